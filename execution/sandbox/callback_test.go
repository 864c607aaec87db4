package sandbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/sandbox"
)

const (
	later20 = `{"order_id":"10094","amount":20,"reason":"arrived broken"}`
	header  = sandbox.FaultHeader
)

// letter is a callback as it arrived.
type letter struct {
	id, signature string
	at            time.Time
	raw           string
	status        string
	valid         []string // which of the secrets signed it
}

// mailbox is a receiver of callbacks.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	answer  func(letter) int
	url     string
}

func (m *mailbox) all() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.letters)
}

func (m *mailbox) statuses() (all []string) {
	for _, l := range m.all() {
		all = append(all, l.status)
	}
	return all
}

// receive makes the refund desk call back to a server of this test.
func (s shop) receive(answer func(letter) int) *mailbox {
	s.Helper()
	box := &mailbox{answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			s.Error(err)
		}
		l := letter{id: r.Header.Get("webhook-id"), signature: r.Header.Get("webhook-signature"), raw: string(raw)}
		seconds, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			s.Errorf("a callback with %v", r.Header)
		}
		l.at = time.Unix(seconds, 0)
		if data, ok := fields(raw)["data"].(map[string]any); ok {
			l.status, _ = data["status"].(string)
		}
		for name, secret := range map[string]string{"current": s.Tokens().RefundsSecret, "next": s.Tokens().RefundsNextSecret} {
			if slices.Contains(strings.Split(l.signature, " "), signature(s, secret, l)) {
				l.valid = append(l.valid, name)
			}
		}
		slices.Sort(l.valid)
		box.mu.Lock()
		box.letters = append(box.letters, l)
		box.mu.Unlock()
		w.WriteHeader(box.answer(l))
	}))
	s.Cleanup(server.Close)
	box.url = server.URL + "/hook"
	s.control(http.MethodPut, "/refunds/callback", `{"url":"`+box.url+`"}`)
	return box
}

// signature is what the public specification says it is.
func signature(t testing.TB, secret string, l letter) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", l.id, l.at.Unix(), l.raw)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func welcome(letter) int { return http.StatusNoContent }

func TestA13_AcceptedThenCalledBack(t *testing.T) {
	s := open(t)
	box := s.receive(welcome)
	s.control(http.MethodPut, "/refunds/orders/10094", `{"settles_after_ms":1}`)
	taken := s.post("/refunds/orders/10094/refunds", "k", later20)
	taken.want(t, http.StatusAccepted)
	taken.wantField(t, "status", "ACCEPTED")
	taken.wantField(t, "refund_id", nil)
	eventually(t, "the callback", func() bool { return len(box.all()) == 1 })

	got := box.all()[0]
	if fmt.Sprint(got.valid) != "[current]" || time.Since(got.at).Abs() > time.Minute || !strings.HasPrefix(got.id, "msg_") {
		t.Errorf("signed by %v at %v as %q", got.valid, got.at, got.id)
	}
	key, read := contracts(t)["refunds.refund_order"].ReadCallback([]byte(got.raw))
	if key != "k" || read.Outcome != action.Success || read.Proves != action.ProvesCompleted {
		t.Errorf("%s reads as %q %+v", got.raw, key, read)
	}
	op := s.get("/refunds/operations/k")
	op.wantField(t, "status", "SUCCEEDED")
	op.wantField(t, "executions", 1.0)
	s.get("/refunds/orders/10094/refunds?execution_key=k").wantField(t, "amount", 20.0)
	replay := s.post("/refunds/orders/10094/refunds", "k", later20) // what became of it by now
	replay.want(t, http.StatusOK)
	replay.wantField(t, "status", "SUCCEEDED")
	if replay.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the second request was not answered from the record")
	}
	s.wantCounts("refunds", "k", 2, 1)
}

// TestAcceptedIsKnownBeforeItIsDone asks and repeats while the refund is only
// promised, and lets another process settle it.
func TestAcceptedIsKnownBeforeItIsDone(t *testing.T) {
	s := open(t)
	first := s.refund("k", back20, header, "accept; delay_ms=30000; queued=true")
	first.want(t, http.StatusAccepted)
	again := s.refund("k", back20)
	again.want(t, http.StatusAccepted)
	if string(again.raw) != string(first.raw) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay differs: %s", again.raw)
	}
	op := s.get("/refunds/operations/k")
	op.wantField(t, "status", "ACCEPTED")
	op.wantField(t, "fenced", false)
	fence := s.send(t.Context(), once, http.MethodPost, "/refunds/operations/k/fence", s.Tokens().RefundsWrite, "")
	fence.wantField(t, "status", "ACCEPTED") // a promise is not taken back
	s.get("/refunds/orders/10086").wantField(t, "refunded", 0.0)
	s.refund("over", `{"order_id":"10086","amount":43,"reason":"x"}`, header, "accept").wantCode(t, http.StatusUnprocessableEntity, "over-refund")
}

func TestRestartSettlesWhatWasAccepted(t *testing.T) {
	s := open(t)
	box := s.receive(welcome)
	s.refund("k", back20, header, "accept; delay_ms=1500").want(t, http.StatusAccepted)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := sandbox.Open(t.Context(), s.dsn, s.Tokens())
	if err != nil {
		t.Fatal(err)
	}
	s.Sandbox, s.url = second, serve(t, second)
	eventually(t, "the callback", func() bool { return len(box.all()) == 1 })
	s.get("/refunds/operations/k").wantField(t, "status", "SUCCEEDED")
}

// TestCallbackFaults looks at what arrives, and what is true by then.
func TestCallbackFaults(t *testing.T) {
	s := open(t)
	for _, c := range []struct {
		params     string
		statuses   string  // of the callbacks, in order
		valid      string  // of those, which are signed well
		known      string  // status by key
		executions float64 // real ones
	}{
		{"delay_ms=1", "[SUCCEEDED]", "[true]", "SUCCEEDED", 1},
		{"early=true", "[SUCCEEDED]", "[true]", "SUCCEEDED", 1},
		{"delay_ms=1; callback_ms=300", "[SUCCEEDED]", "[true]", "SUCCEEDED", 1},
		{"delay_ms=1; deliveries=3", "[SUCCEEDED SUCCEEDED SUCCEEDED]", "[true true true]", "SUCCEEDED", 1},
		{"delay_ms=1; queued=true", "[QUEUED SUCCEEDED]", "[true true]", "SUCCEEDED", 1},
		{"delay_ms=1; outcome=refused", "[FAILED]", "[true]", "FAILED", 0},
		{"delay_ms=1; outcome=in_word", "[SUCCEEDED]", "[true]", "SUCCEEDED", 0},
		{"delay_ms=1; silent=true", "[]", "[]", "SUCCEEDED", 1},
		{"delay_ms=1; forged=wrong; outcome=refused", "[SUCCEEDED FAILED]", "[false true]", "FAILED", 0},
		{"delay_ms=1; forged=stale", "[SUCCEEDED SUCCEEDED]", "[false true]", "SUCCEEDED", 1},
		{"delay_ms=1; forged=unsigned; silent=true", "[SUCCEEDED]", "[false]", "SUCCEEDED", 1},
	} {
		t.Run(c.params, func(t *testing.T) {
			box := s.receive(func(l letter) int {
				if len(l.valid) == 0 || time.Since(l.at) > 5*time.Minute {
					return http.StatusUnauthorized
				}
				return http.StatusOK
			})
			key := strings.NewReplacer(" ", "", ";", "-", "=", "-").Replace(c.params)
			r := s.refund(key, `{"order_id":"10086","amount":1,"reason":"x"}`, header, "accept; "+c.params)
			r.want(t, http.StatusAccepted)
			if strings.HasPrefix(c.params, "early") && len(box.all()) != 1 {
				t.Error("the answer came before the callback")
			}
			eventually(t, "it is settled and nothing is left to deliver", func() bool {
				if s.get("/refunds/operations/" + key).body["status"] != c.known {
					return false
				}
				for _, item := range s.control(http.MethodGet, "/faults/callbacks?system=refunds&key="+key, "").body["items"].([]any) {
					if item.(map[string]any)["remaining"] != 0.0 {
						return false
					}
				}
				return true
			})
			valid, ids := []bool{}, map[string]bool{}
			for _, l := range box.all() {
				valid = append(valid, len(l.valid) > 0 && time.Since(l.at) < 5*time.Minute)
				ids[l.id+l.status] = true
			}
			if got := fmt.Sprint(box.statuses()); got != c.statuses || fmt.Sprint(valid) != c.valid {
				t.Errorf("%s, signed well: %v; want %s, %s", got, valid, c.statuses, c.valid)
			}
			if strings.Contains(c.params, "deliveries") && len(ids) != 1 {
				t.Errorf("one message has several ids: %v", ids)
			}
			s.wantCounts("refunds", key, 1, c.executions)
		})
	}
}

func TestCallbackIsSentUntilItIsTaken(t *testing.T) {
	s := open(t)
	var refused atomic.Int32
	box := s.receive(func(letter) int {
		if refused.Add(1) <= 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	s.refund("k", back20, header, "accept; early=true").want(t, http.StatusAccepted)
	got := box.all()
	if len(got) != 3 || got[0].id != got[2].id || got[0].raw != got[2].raw {
		t.Errorf("%d deliveries: %v", len(got), got)
	}
	item := s.control(http.MethodGet, "/faults/callbacks?key=k", "").body["items"].([]any)[0].(map[string]any)
	if item["delivered"] != 1.0 || item["last_status"] != 200.0 {
		t.Errorf("the outbox says %v", item)
	}
}

func TestSecretsAreRotated(t *testing.T) {
	s := open(t)
	box := s.receive(welcome)
	for i, c := range []struct{ signing, valid string }{{"current", "[current]"}, {"both", "[current next]"}, {"next", "[next]"}} {
		if err := s.CallBack(t.Context(), sandbox.Refunds, box.url, sandbox.Signing(c.signing)); err != nil {
			t.Fatal(err)
		}
		s.refund(c.signing, `{"order_id":"10086","amount":1,"reason":"x"}`, header, "accept; early=true").want(t, http.StatusAccepted)
		if got := box.all(); len(got) != i+1 || fmt.Sprint(got[i].valid) != c.valid {
			t.Errorf("%s: %v", c.signing, got)
		}
	}
}

func TestCallbackRefusals(t *testing.T) {
	s := open(t)
	for _, body := range []string{`{}`, `{"url":"ftp://x/y"}`, `{"url":"/hook"}`, `{"url":"http://u:p@x/"}`, `{"url":"http://x/","signing":"none"}`, `[]`} {
		s.send(t.Context(), once, http.MethodPut, "/refunds/callback", s.Tokens().Control, body).wantCode(t, http.StatusBadRequest, "malformed")
	}
	s.send(t.Context(), once, http.MethodPut, "/refunds/callback", s.Tokens().RefundsWrite, `{"url":"http://x/"}`).wantCode(t, http.StatusUnauthorized, "unauthorized")
	for _, text := range []string{"lie; early=true", "accept; outcome=x", "accept; forged=x", "accept; callback_ms=3600001", "accept; deliveries=21", "accept; deliveries=-1"} {
		s.refund("h", back20, header, text).wantCode(t, http.StatusBadRequest, "malformed")
	}
	for _, tokens := range []sandbox.Tokens{
		{RefundsSecret: "whsec_c2hvcnQ="}, {RefundsSecret: "bm90IGEgc2VjcmV0IG5vdCBhIHNlY3JldCE="},
		{RefundsSecret: s.Tokens().RefundsSecret, RefundsNextSecret: s.Tokens().RefundsSecret},
	} {
		if _, err := sandbox.Open(t.Context(), s.dsn, tokens); err == nil {
			t.Errorf("secrets were taken: %+v", tokens)
		}
	}
}
