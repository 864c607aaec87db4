package execution_test

import (
	"net/http"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution"
	"countersign/triage"
)

// A refund that timed out after it had succeeded: the stored success is taken
// over, and the trace that a program reads says that the handler ran once.
func TestE3_TheTraceOfATimeoutAfterSuccess(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"act-then-delay","delay_ms":3000}`)
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.Applied)
		b.paidOnce(a)
		client, err := execution.NewClient(b.console.URL, execution.NewSecret(b.key), execution.Options{})
		b.must(err)
		trace, err := client.Get(t.Context(), a.ID)
		b.must(err)
		if trace.HandlerExecutions != 1 || len(trace.Attempts) != 1 || len(trace.Receipts) != 1 || trace.Receipts[0].Outcome != string(action.Unknown) {
			t.Errorf("%d executions, attempts %+v, receipts %+v", trace.HandlerExecutions, trace.Attempts, trace.Receipts)
		}
		if len(a.Asks) == 0 || a.Asks[len(a.Asks)-1].Found.Outcome != action.FoundSucceeded || a.Asks[len(a.Asks)-1].Found.Proves != action.ProvesCompleted {
			t.Errorf("replayed from %+v", a.Asks)
		}
		if trace.Statement.Level != string(action.LevelCompleted) || !strings.Contains(string(trace.Result), "LAPSE-000001") {
			t.Errorf("says %s, result %s", trace.Statement.Level, trace.Result)
		}
		if n := b.sent(a.ExecutionKey); n != 1 {
			t.Errorf("the desk received it %d times", n)
		}
	})
}

// While the desk says that it is working on it, and while it does not answer
// the question, nothing is decided and nothing is sent. Its word decides.
func TestE5_OnlyWhatTheDeskAnswersDecides(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"slow","delay_ms":8000}`)
		b.arm(`{"system":"refunds","method":"GET","path":"/refunds/operations","fault":"malformed"}`)
		b.start(b.serving(hurried))
		unknown := b.await(a.ID, "asked twice", func(a action.Action) bool { return len(a.Asks) >= 2 })
		if unknown.State != action.ResultUnknown || unknown.CaseID() == "" || len(unknown.Attempts) != 1 {
			t.Errorf("while nobody knows: %s", story(unknown))
		}
		for i, q := range unknown.Asks {
			if q.Found.Outcome != action.FoundUnknown {
				t.Errorf("question %d was answered %s", i+1, q.Found.Outcome)
			}
		}
		a = b.ends(a.ID, action.Applied)
		b.paidOnce(a)
		if len(a.Attempts) != 1 || a.Asks[len(a.Asks)-1].Found.Outcome != action.FoundSucceeded {
			t.Errorf("%s", story(a))
		}
	})
}

// What a success must have left behind is asked of that order alone, by reads:
// within the window until it is seen, and no longer once the order is final.
func TestD2_PostConditionsRunWithinTheirWindow(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		for name, c := range map[string]struct {
			fault, terminal string
			ends            action.State
			reads           func(int) bool
		}{
			"seen late":           {"lag", "object.order_status == 'closed'", action.Applied, func(n int) bool { return n >= 2 }},
			"never seen":          {"record-only", "object.order_status == 'closed'", action.ResultUnknown, func(n int) bool { return n >= 2 && n <= 3 }},
			"final, and not seen": {"record-only", "object.order_status == 'paid'", action.ResultUnknown, func(n int) bool { return n == 1 }},
		} {
			b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"`+c.fault+`","delay_ms":600}`,
				"terminal_when: \"object.order_status == 'closed'\"", "terminal_when: \""+c.terminal+"\"")
			b.start(b.serving(hurried))
			a = b.ends(a.ID, c.ends)
			read := 0
			for _, o := range a.Observations {
				if o.At.After(a.Receipts[0].At) {
					read++
				}
			}
			if !c.reads(read) {
				t.Errorf("%s: read back %d times: %s, %s", name, read, story(a), a.Observations[len(a.Observations)-1].Snapshot)
			}
			for _, call := range b.calls("system=refunds") {
				if call.Method == http.MethodGet && strings.Contains(call.Path, "/orders/") && !strings.Contains(call.Path, "LAPSE-000001") {
					t.Errorf("%s: %s was read", name, call.Path)
				}
			}
			if n := b.sent(a.ExecutionKey); n != 1 {
				t.Errorf("%s: sent %d times", name, n)
			}
		}
	})
}

// The desk records a success and pays nothing. It is read back as often as the
// contract says, and what was found out costs no further write.
func TestD3_ReadingBackIsBoundedAndWritesNothing(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"record-only"}`, "max_polls: 6", "max_polls: 2")
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.ResultUnknown)
		mismatches := 0
		for _, o := range a.Observations {
			if o.Holds == action.HoldsFalse {
				mismatches++
			}
		}
		if mismatches == 0 || mismatches > 3 || a.Case.Why != action.WhyMismatch {
			t.Errorf("%d read-backs before the case %q: %s", mismatches, a.Case.Why, story(a))
		}
		b.eventually("the questions to end", func() bool { return b.get(a.ID).Exhausted() })
		a = b.get(a.ID)
		if n := b.sent(a.ExecutionKey); n != 1 || len(a.Attempts) != 1 || a.State != action.ResultUnknown {
			t.Errorf("sent %d times: %s", n, story(a))
		}
	})
}

// A read-back that fails is unknown: neither done nor not done, until one works.
func TestD3_AFailedReadingIsUnknown(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, "")
		b.fail("receipts", once(1, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			resp, err := post(b, "/faults", `{"system":"refunds","method":"GET","path":"/refunds/orders","fault":"error-before","count":2}`)
			if err != nil || resp != http.StatusOK {
				t.Errorf("arming: %d, %v", resp, err)
			}
			serve(w, r)
		}))
		b.start(b.serving(hurried))
		read := b.await(a.ID, "read back in vain", func(a action.Action) bool {
			return len(a.Observations) > 0 && a.Observations[len(a.Observations)-1].Failed
		})
		if read.State != action.Accepted || read.Proven != action.ProvesCompleted {
			t.Errorf("after a reading that failed: %s", story(read))
		}
		a = b.ends(a.ID, action.Applied)
		b.paidOnce(a)
		if n := b.sent(a.ExecutionKey); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// Everything that looks does so with a credential that cannot write.
func TestD6_WhatLooksCannotWrite(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b, a := lapsing(t, `{"object":"LAPSE-000001","fault":"act-then-reset"}`)
		b.start(b.serving(hurried))
		a = b.ends(a.ID, action.Applied)
		reads := 0
		for _, c := range b.calls("system=refunds") {
			switch {
			case c.Method == http.MethodPost && c.Credential != "write":
				t.Errorf("%s %s was sent with the credential %q", c.Method, c.Path, c.Credential)
			case c.Method == http.MethodGet && c.Key == a.ExecutionKey:
				if reads++; c.Credential != "read" {
					t.Errorf("%s %s was sent with the credential %q", c.Method, c.Path, c.Credential)
				}
			}
		}
		if reads < 2 {
			t.Errorf("%d reads: asked and read back is two", reads)
		}
		if status, err := post(b, "/refunds/orders/LAPSE-000001/refunds", `{"order_id":"LAPSE-000001","amount":10,"reason":"x"}`, b.tokens.RefundsRead); err != nil || status != http.StatusForbidden {
			t.Errorf("a write with the credential for reading: %d, %v", status, err)
		}
	})
}

// Of two orders the desk says the same, "cancelled". One is; the other goes to a
// person, with the field that is not what it should be.
func TestD1_WhatIsSaidIsNotWhatIsDone(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		b.hurriedOf("orders.cancel_order", "orders.hurried")
		cancelled := func(order string) action.Action {
			return b.approve(b.propose("orders.hurried", actor, `{"order_id":"`+order+`","reason":"no longer needed"}`, ""))
		}
		said, done := cancelled("10086"), cancelled("10087")
		b.start(b.config())
		if a := b.ends(done.ID, action.Applied); len(a.Attempts) != 1 {
			t.Errorf("10087: %s", story(a))
		}
		a := b.ends(said.ID, action.ResultUnknown)
		if a.Receipts[0].Outcome != action.Success || a.CaseID() == "" || a.Case.Why != action.WhyMismatch || len(a.Attempts) != 1 {
			t.Errorf("10086: case %+v: %s", a.Case, story(a))
		}
		tool, err := b.Catalogue.Version(t.Context(), a.Tool, a.ToolVersion)
		b.must(err)
		fields, err := triage.Compare(t.Context(), tool, a)
		b.must(err)
		if len(fields) != 2 || fields[0].Field != "/status" || fields[0].Holds != action.HoldsFalse ||
			string(fields[0].Expected) != `"cancelled"` || string(fields[0].Observed) != `"paid"` {
			t.Errorf("the case compares %+v", fields)
		}
	})
}

// The catalogue says that the price was changed, and it was not.
func TestB9_SuccessThatChangedNothingIsCaught(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		for name, fault := range map[string]string{"answered only": "lie", "recorded only": "record-only"} {
			b := newBench(t)
			b.sweeping()
			b.hurriedOf(setPrice, "catalog.hurried")
			a := b.approve(b.propose("catalog.hurried", actor, to105, "8"))
			b.arm(`{"system":"catalog","fault":"` + fault + `"}`)
			b.start(b.config())
			a = b.ends(a.ID, action.ResultUnknown)
			if price, version := b.product("SKU-4411"); price == 105 || version != 8 {
				t.Fatalf("%s: the price is %v at version %d", name, price, version)
			}
			level, _ := a.Statement(a.UpdatedAt)
			if a.CaseID() == "" || a.Case.Why != action.WhyMismatch || level != action.LevelUnknown || a.Receipts[0].Outcome != action.Success {
				t.Errorf("%s: case %+v, says %s: %s", name, a.Case, level, story(a))
			}
		}
	})
}

// post sends something to the shop and returns the status; with the control
// token unless another is given, and in somebody's name if one follows it.
func post(b *bench, path, body string, token ...string) (int, error) {
	req, err := http.NewRequest(http.MethodPost, b.shop.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Idempotency-Key", "by-hand")
	req.Header.Set("Authorization", "Bearer "+append(token, b.tokens.Control)[0])
	if len(token) > 1 {
		req.Header.Set("X-Actor", token[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
