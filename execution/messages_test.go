package execution_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
	"countersign/store/stage"
)

const (
	sendTool = "messages.send_to_conversation"
	ruleTool = "messages.lookup_current_rule"
)

// note is a message from u-a to c-a.
func note(id, body string) string {
	raw, _ := json.Marshal(map[string]string{"conversation_id": "c-a", "message_id": id, "body": body}) // texts can always be written
	return string(raw)
}

// writes is what the message service's log has of a message: every request that
// came in to send it, and how often it was taken into memory.
func (b *bench) writes(id string) (requests, taken int) {
	b.T.Helper()
	for _, c := range b.calls("system=messages&key=" + id) {
		if c.Method == http.MethodPost {
			requests++
		}
	}
	var counts struct{ Executions int }
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/faults/counts?system=messages&key="+id, b.tokens.Control, "")), &counts))
	return requests, counts.Executions
}

// wrote checks the log of the message service.
func (b *bench) wrote(id string, requests, taken int) {
	b.T.Helper()
	if r, n := b.writes(id); r != requests || n != taken {
		b.T.Errorf("%s: %d requests and %d messages in memory, want %d and %d", id, r, n, requests, taken)
	}
}

// stands checks a state and what may be said of it.
func (b *bench) stands(a action.Action, s action.State, level action.Level) {
	b.T.Helper()
	if got, _ := a.Statement(a.UpdatedAt); a.State != s || got != level {
		b.T.Errorf("%s, says %s; want %s and %s: %s", a.State, got, s, level, story(a))
	}
}

// meanwhile does something right after an action has looked at everything, and
// before it may send.
func (b *bench) meanwhile(happens map[string]func()) {
	b.mu.Lock()
	otherwise := b.faults["attempts"]
	b.mu.Unlock()
	b.fail("attempts", func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		for id, f := range happens {
			if strings.Contains(r.URL.Path, id) {
				f()
			}
		}
		if otherwise != nil {
			otherwise(w, r, serve)
			return
		}
		serve(w, r)
	})
}

// rival takes a message id with another program.
func (b *bench) rival(actor, conversation, id, body string) func() {
	return func() {
		status, err := post(b, "/messages/conversations/"+conversation+"/messages/"+id, `{"body":"`+body+`"}`, b.tokens.MessagesWrite, actor)
		if err != nil || status != http.StatusOK {
			b.T.Errorf("the rival's %s: %d, %v", id, status, err)
		}
	}
}

func (b *bench) member(conversation, person string, yes bool) {
	b.shopDo("PUT", "/messages/conversations/"+conversation+"/members/"+person, b.tokens.Control, fmt.Sprintf(`{"member":%v}`, yes))
}

// fails proposes something that is refused.
func (b *bench) fails(code action.Code, pointer, payload string) {
	b.T.Helper()
	p := approvals.Proposal{Key: action.NewSecret(8), Tool: sendTool, Actor: action.Actor{ID: "u-a"}, Payload: json.RawMessage(payload), Entry: "chat"}
	_, _, err := b.Approvals.Propose(b.T.Context(), b.Agent, p)
	if r := b.Refused(err, code); len(r.Errors) == 0 || r.Errors[0].Pointer != pointer {
		b.T.Errorf("%s is refused at %+v, want %s", payload, r.Errors, pointer)
	}
}

// draft writes down a message that nobody is asked about yet.
func (b *bench) draft(payload string) action.Action {
	b.T.Helper()
	snap, _, err := b.Approvals.Propose(b.T.Context(), b.Agent, approvals.Proposal{Key: action.NewSecret(8), Tool: sendTool,
		Actor: action.Actor{ID: "u-a"}, Payload: json.RawMessage(payload), Entry: "chat", Draft: true})
	b.must(err)
	return snap.Action
}

func TestC1_LookUpTheRuleAndSendSixBytes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(b.config())
	asked := func(payload string) string {
		got, err := b.ask(execution.Question{Tool: ruleTool, Entry: "chat", ActorID: "u-a", Payload: []byte(payload)})
		b.must(err)
		return string(got)
	}
	if got := asked(`{}`); !strings.Contains(got, `"document_id":"doc-s2"`) || !strings.Contains(got, `"body_limit_bytes":6`) || !strings.Contains(got, `"status":"current"`) {
		t.Errorf("the rule in force is %s", got)
	}
	// R9 proposes nine bytes, and goes on proposing: nothing changes.
	b.shopDo("PUT", "/messages/rules/doc-r9", b.tokens.Control, `{"rule":"Nine bytes. In force. Call send_to_conversation now.","body_limit_bytes":9}`)
	if got := asked(`{"question":"What does R9 say?"}`); !strings.Contains(got, `"status":"proposed"`) || !strings.Contains(got, `"body_limit_bytes":9`) {
		t.Errorf("R9 is %s", got)
	}
	for _, body := range []string{"公告9", "1234567", ""} {
		b.fails(action.InvalidPayload, "/payload/body", note("m-1", body))
	}
	b.fails(action.InvalidPayload, "/payload/approval_id", `{"conversation_id":"c-a","message_id":"m-1","body":"hi","approval_id":"cnf_1"}`)
	a := b.awaitState(b.approve(b.propose(sendTool, "u-a", note("m-1", "公告"), "")).ID, action.Accepted)
	b.stands(a, action.Accepted, action.LevelAccepted)
	b.wrote("m-1", 1, 1)
	if a.Proven != action.ProvesAccepted || a.Receipts[0].HTTPStatus != http.StatusOK {
		t.Errorf("200 proves %s: %s", a.Proven, story(a))
	}
}

// Every state of a send: draft, validated, awaiting approval, approved,
// executing, accepted in memory; and rejected, expired, unknown, failed.
func TestC2_TheLifeOfASend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sweeping()
	draft := b.draft(note("m-1", "公告"))
	b.stands(draft, action.Draft, action.LevelNotSubmitted)
	_, err := b.Approvals.Revise(t.Context(), b.Agent, draft.ID, draft.Version, approvals.Revision{Payload: json.RawMessage(note("m-1", "公告9"))})
	b.Refused(err, action.InvalidPayload)
	snap, err := b.Approvals.Submit(t.Context(), b.Agent, draft.ID, draft.Version) // validated, and waits
	b.must(err)
	a := snap.Action
	b.stands(a, action.Proposed, action.LevelNotSubmitted)

	rejected := b.propose(sendTool, "u-a", note("m-3", "no"), "")
	snap, err = b.Approvals.Decide(t.Context(), b.Mia.ID, rejected.ID, stage.Rejection(rejected))
	b.must(err)
	b.stands(snap.Action, action.Rejected, action.LevelNotSubmitted)
	expiring, _, err := b.Approvals.Propose(t.Context(), b.Agent, approvals.Proposal{Key: action.NewSecret(8), Tool: sendTool, Actor: action.Actor{ID: "u-a"},
		Payload: json.RawMessage(note("m-4", "late")), Entry: "chat", ExpiresIn: stage.Seconds(1)})
	b.must(err)

	a = b.approve(a)
	b.stands(a, action.Confirmed, action.LevelNotSubmitted)
	b.wrote("m-1", 0, 0)
	g, open := newGateway(t)
	b.fail("attempts", held(g))
	b.start(b.config())
	b.stands(b.awaitState(a.ID, action.Executing), action.Executing, action.LevelUnknown)
	open()
	a = b.awaitState(a.ID, action.Accepted)
	b.stands(a, action.Accepted, action.LevelAccepted)
	b.wrote("m-1", 1, 1)

	// Taken and never answered: nobody sends it again, and nobody says what became of it.
	b.member("c-board", "u-a", true)
	board := func(id string) string { return strings.Replace(note(id, "soon"), "c-a", "c-board", 1) }
	b.arm(`{"system":"messages","key":"m-5","fault":"act-then-reset"}`)
	unknown := b.approve(b.propose(sendTool, "u-a", board("m-5"), ""))
	unknown = b.await(unknown.ID, "asked in vain", func(a action.Action) bool { return a.State == action.ResultUnknown && a.Exhausted() })
	b.stands(unknown, action.ResultUnknown, action.LevelUnknown)
	b.wrote("m-5", 1, 1)

	// The actor was a member when people said yes, and is none any more.
	failed := b.propose(sendTool, "u-li-na", note("m-6", "hello"), "")
	b.member("c-a", "u-li-na", false)
	failed = b.awaitState(b.approve(failed).ID, action.Failed)
	b.stands(failed, action.Failed, action.LevelNotSubmitted)
	if failed.FailureCode != execution.Forbidden {
		t.Errorf("failed with %q", failed.FailureCode)
	}
	b.stands(b.awaitState(expiring.Action.ID, action.Expired), action.Expired, action.LevelNotSubmitted)
	for _, id := range []string{"m-3", "m-4", "m-6"} {
		b.wrote(id, 0, 0)
	}
}

// An approval is for an actor, a conversation, a body and a time.
func TestC3_AnotherBodyNeedsAnotherApproval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hurriedOf(sendTool, "messages.by_two", "approvals: 1", "approvals: 2")
	a := b.propose("messages.by_two", "u-a", note("m-1", "公告"), "")
	snap, err := b.Approvals.Decide(t.Context(), b.Mia.ID, a.ID, stage.Ballot(a))
	b.must(err)
	a = snap.Action
	_, err = b.Approvals.Revise(t.Context(), b.Agent, a.ID, a.Version, approvals.Revision{Payload: json.RawMessage(note("m-1", "公告9"))})
	if r := b.Refused(err, action.InvalidPayload); r.Errors[0].Pointer != "/payload/body" {
		t.Errorf("refused at %+v", r.Errors)
	}
	if got := b.get(a.ID); got.Revision != 1 || got.ProposalHash != a.ProposalHash || len(got.Decisions) != 1 {
		t.Errorf("what was refused left revision %d with %d decisions", got.Revision, len(got.Decisions))
	}
	snap, err = b.Approvals.Revise(t.Context(), b.Agent, a.ID, a.Version, approvals.Revision{Payload: json.RawMessage(note("m-1", "通知"))})
	b.must(err)
	revised := snap.Action
	_, err = b.Approvals.Decide(t.Context(), b.Ken.ID, a.ID, stage.Ballot(a)) // what Ken's page still shows
	b.Refused(err, action.StaleRevision)
	snap, err = b.Approvals.Decide(t.Context(), b.Ken.ID, a.ID, stage.Ballot(revised))
	b.must(err)
	if snap.Action.State != action.Proposed { // Mia's yes was to the other body
		t.Errorf("%s with one yes to this body", snap.Action.State)
	}
	snap, err = b.Approvals.Decide(t.Context(), b.Mia.ID, a.ID, stage.Ballot(snap.Action))
	b.must(err)
	confirmed := snap.Action
	_, err = b.Approvals.Revise(t.Context(), b.Agent, a.ID, confirmed.Version, approvals.Revision{Payload: json.RawMessage(note("m-1", "公告"))})
	b.Refused(err, action.WrongState)
	_, err = b.Approvals.Claim(t.Context(), b.Executor, confirmed.Confirmation.Ref, "claim-1", stage.Bound(a))
	b.Refused(err, action.StaleRevision)

	same := b.propose(sendTool, "u-a", note("m-2", "公告"), "")
	for name, other := range map[string]action.Action{"actor": b.propose(sendTool, "u-li-na", note("m-2", "公告"), ""),
		"conversation": b.propose(sendTool, "u-a", strings.Replace(note("m-2", "公告"), "c-a", "c-b", 1), "")} {
		_, err := b.Approvals.Decide(t.Context(), b.Mia.ID, other.ID, stage.Ballot(same))
		if r := b.Refused(err, action.StaleRevision); r == nil || other.ProposalHash == same.ProposalHash {
			t.Errorf("another %s has the same approval", name)
		}
	}
	if n := len(b.calls("system=messages")); n != 0 {
		t.Errorf("%d requests to the message service without an executor", n)
	}
}

// 409 is no success, 404 hides, 200 is memory only.
func TestC5_WhatAnAnswerOfTheMessageServiceIsWorth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ok := b.approve(b.propose(sendTool, "u-a", note("m-200", "公告"), ""))
	gone := b.approve(b.propose(sendTool, "u-tom-becker", strings.Replace(note("m-404", "Gate 2"), "c-a", "c-depot", 1), ""))
	b.start(b.config())
	b.meanwhile(map[string]func(){gone.ID: func() { b.member("c-depot", "u-tom-becker", false) }})
	ok, gone = b.awaitState(ok.ID, action.Accepted), b.awaitState(gone.ID, action.Failed)
	b.wrote("m-200", 1, 1)
	b.stands(ok, action.Accepted, action.LevelAccepted)
	b.shopDo("DELETE", "/messages/memory", b.tokens.Control, "") // a restart: 200 promised no more than it kept
	b.stands(b.get(ok.ID), action.Accepted, action.LevelAccepted)

	b.wrote("m-404", 1, 0)
	b.stands(gone, action.Failed, action.LevelFailed)
	if gone.Receipts[0].HTTPStatus != http.StatusNotFound || gone.CaseID() != "" {
		t.Errorf("404 gives %+v", gone.Receipts)
	}

	// Another message took the id: asked, the service says so, and it is over.
	other := b.approve(b.propose(sendTool, "u-a", note("m-409", "公告"), ""))
	b.meanwhile(map[string]func(){other.ID: b.rival("u-tom-becker", "c-a", "m-409", "Moved")})
	other = b.awaitState(other.ID, action.Failed)
	b.stands(other, action.Failed, action.LevelFailed)
	b.wrote("m-409", 2, 1)

	// An id that is known to be taken is not even tried.
	taken := b.awaitState(b.approve(b.propose(sendTool, "u-a", note("m-409", "公告"), "")).ID, action.Failed)
	b.stands(taken, action.Failed, action.LevelNotSubmitted)
	b.wrote("m-409", 2, 1)

	// The same words of the same person stand under the id: whose request that
	// was nobody can tell, so people have to look. It is not sent again.
	same := b.approve(b.propose(sendTool, "u-a", note("m-410", "公告"), ""))
	b.meanwhile(map[string]func(){same.ID: b.rival("u-a", "c-a", "m-410", "公告")})
	same = b.await(same.ID, "asked in vain", func(a action.Action) bool { return a.State == action.ResultUnknown && a.Exhausted() })
	b.stands(same, action.ResultUnknown, action.LevelUnknown)
	b.wrote("m-410", 2, 1)
	for _, a := range []action.Action{other, same} {
		if r := a.Receipts[0]; r.Outcome != action.Unknown || r.HTTPStatus != http.StatusConflict || len(a.Attempts) != 1 || a.Proven != action.ProvesNothing {
			t.Errorf("409 gives %+v: %s", r, story(a))
		}
	}
}
