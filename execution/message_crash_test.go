package execution_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"countersign/action"
)

// sending is a message whose executor is killed on the way.
type sending struct {
	*crash
	id                   string // of the message; its conversation is called the same
	rival, late, unasked bool   // somebody takes the id; the answer is on its way for long; nobody has approved yet
	end                  action.State
	level                action.Level
	requests, taken      int
}

// sendings are the five points at which a workflow can lose its process, and
// what came of each: nothing called, about to call, no answer, 200, and 409.
func sendings() []*sending {
	const accepted, unknown = action.Accepted, action.ResultUnknown
	const told, cannotSay = action.LevelAccepted, action.LevelUnknown
	return []*sending{
		{crash: &crash{name: "before the approval", call: "observations", nth: 1}, unasked: true, end: accepted, level: told, requests: 1, taken: 1},
		{crash: &crash{name: "before the tool is called", call: "attempts", nth: 1}, end: accepted, level: told, requests: 1, taken: 1},
		{crash: &crash{name: "with the leave to call it", call: "attempts", nth: 1, recorded: true}, end: unknown, level: cannotSay},
		{crash: &crash{name: "before the answer is there"}, late: true, end: unknown, level: cannotSay, requests: 1, taken: 1},
		{crash: &crash{name: "having read 200", call: "receipts", nth: 1}, end: unknown, level: cannotSay, requests: 1, taken: 1},
		{crash: &crash{name: "having told of 200", call: "receipts", nth: 1, recorded: true}, end: accepted, level: told, requests: 1, taken: 1},
		{crash: &crash{name: "having read 409", call: "receipts", nth: 1}, rival: true, end: unknown, level: cannotSay, requests: 1},
		{crash: &crash{name: "having told of 409", call: "receipts", nth: 1, recorded: true}, rival: true, end: unknown, level: cannotSay, requests: 1},
	}
}

// An executor that sends a message is killed at any of five points, and another
// one goes on. At most one request ever leaves, and what is said in the end is
// no more than what is known.
func TestC7_KilledAtAnyOfFivePoints(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		all := sendings()
		var crashes []*crash
		for i, s := range all {
			b.stage7(s, i)
			crashes = append(crashes, s.crash)
		}
		b.crashing(crashes)
		rivals := map[string]func(){}
		for _, s := range all {
			if s.rival {
				rivals[s.action.ID] = b.rival("u-a", s.id, s.id, "公告")
			}
		}
		b.meanwhile(rivals)
		for _, s := range all {
			s.starts(b.process(s.action.Tool))
			if s.late {
				b.eventually(s.name, func() bool { _, taken := b.writes(s.id); return taken == 1 })
				s.happens()
			}
		}
		for _, s := range all {
			b.came(s.crash)
			if a := b.get(s.action.ID); s.unasked && a.State != action.Proposed {
				t.Errorf("%s: nobody has approved, and it is %s", s.name, a.State)
			} else if s.unasked {
				b.approve(a) // the proposal outlived the process
			}
		}
		b.process("messages.*")
		for _, s := range all {
			a := b.ends(s.action.ID, s.end)
			if s.end == action.ResultUnknown {
				a = b.await(a.ID, "asked in vain", action.Action.Exhausted)
			}
			b.stands(a, s.end, s.level)
			theirs := map[bool]int{true: 1}[s.rival]
			if requests, taken := b.writes(s.id); requests != s.requests+theirs || taken != s.taken+theirs {
				t.Errorf("%s: %d requests, %d taken into memory: %s", s.name, requests, taken, story(a))
			}
			if len(a.Attempts) != 1 || (s.end == action.ResultUnknown) != (a.CaseID() != "") {
				t.Errorf("%s: %d attempts, case %q", s.name, len(a.Attempts), a.CaseID())
			}
		}
	})
}

// stage7 makes a conversation, a contract and an action for one of them.
func (b *bench) stage7(s *sending, i int) {
	s.id = fmt.Sprintf("crash-%d", i)
	tool := fmt.Sprintf("messages.crash_%d", i)
	b.member(s.id, "u-a", true)
	var times []string
	if s.late {
		times = []string{"timeout: 10s", "timeout: " + b.at(9*time.Second).String(), "lease: 60s", "lease: " + b.at(10*time.Second).String()}
		b.arm(`{"system":"messages","key":"` + s.id + `","fault":"act-then-delay","delay_ms":20000}`)
	}
	b.hurriedOf(sendTool, tool, times...)
	payload, err := json.Marshal(map[string]string{"conversation_id": s.id, "message_id": s.id, "body": "公告"})
	b.must(err)
	if s.action = b.propose(tool, "u-a", string(payload), ""); !s.unasked {
		s.action = b.approve(s.action)
	}
}
