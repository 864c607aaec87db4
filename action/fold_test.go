package action

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Approved bytes stay as they are, whatever an encoder would like to escape.
func TestPayloadBytesGoThroughUnchanged(t *testing.T) {
	odd := rapid.SampledFrom([]string{"\u2028", "\u2029", "<b>&amp;</b>", "\u202e", "\x00", "\x7f", "\U0001F600", "\"", "\\", "é", "e\u0301", "/"})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(odd, rapid.String()), 0, 5).Draw(r, "text"), "")
		raw, err := json.Marshal(map[string]any{"text": text, text: 1.5})
		if err != nil {
			r.Fatal(err)
		}
		payload, err := Canonical(raw)
		if err != nil {
			r.Fatal(err)
		}
		l := newLife(r)
		c := l.propose()
		c.Payload, c.Reason, c.Actor.Name = payload, text, text
		tr := l.do(c, Proposed)
		if !bytes.Contains(tr.Event.Body, payload) {
			r.Fatalf("the body %s does not hold %s", tr.Event.Body, payload)
		}
		folded, err := Fold(l.events)
		if err != nil || !bytes.Equal(folded.Payload, payload) || PayloadHash(folded.Payload) != folded.PayloadHash {
			r.Fatalf("folded %s, want %s (%v)", folded.Payload, payload, err)
		}
		if folded.Reason != c.Reason || folded.Actor.Name != c.Actor.Name {
			r.Fatalf("reason %q, name %q, want %q", folded.Reason, folded.Actor.Name, text)
		}
	})
}

// Removing every body leaves a life that can still be checked.
func TestFoldWithoutBodies(t *testing.T) {
	l := newLife(t).unknown()
	l.do(l.settle(Happened), Applied)
	for i := range l.events {
		l.events[i].Body = nil
	}
	a, err := Fold(l.events)
	if err != nil {
		t.Fatal(err)
	}
	if a.Payload != nil || a.Reason != "" || a.Case.Verdict.Note != "" {
		t.Error("content survived its removal")
	}
	if a.State != Applied || a.PayloadHash != l.a.PayloadHash || a.Binding().Hash() != l.a.ProposalHash || len(a.Attempts) != 1 {
		t.Errorf("folded to %+v", a)
	}
}

func TestFoldRefusesEventsThatDoNotFollow(t *testing.T) {
	whole := newLife(t).sent().events
	for name, spoil := range map[string]func(e []Event) []Event{
		"none":          func([]Event) []Event { return nil },
		"a gap":         func(e []Event) []Event { return slices.Delete(e, 1, 2) },
		"twice":         func(e []Event) []Event { return append(e, e[len(e)-1]) },
		"other order":   func(e []Event) []Event { e[1], e[2] = e[2], e[1]; return e },
		"another start": func(e []Event) []Event { e[2].From = Draft; return e },
		"unknown kind":  func(e []Event) []Event { e[1].Kind = "blessed"; return e },
		"unknown state": func(e []Event) []Event { e[1].To, e[2].From = "done", "done"; return e },
		"no data":       func(e []Event) []Event { e[1].Data = nil; return e },
		"no claim":      func(e []Event) []Event { e[2].Kind = KindLapsed; return e },
		"no case":       func(e []Event) []Event { e[3].To = ResultUnknown; return e },
		"no one agreed": func(e []Event) []Event { e[1].Data = json.RawMessage(`{}`); return e },
		"no case yet":   func(e []Event) []Event { e[3].Kind = KindVerdict; return e },
		"bad body":      func(e []Event) []Event { e[0].Body = json.RawMessage(`[`); return e },
	} {
		if a, err := Fold(spoil(slices.Clone(whole))); err == nil {
			t.Errorf("%s: folded to %s", name, a.State)
		}
	}
}

// Whatever is stored, folding it and asking what it is ends.
func TestFoldNeverPanics(t *testing.T) {
	kinds, states := constantsOf(t, "Kind"), texts(States())
	l := newLife(t).unknown()
	l.do(l.settle(DidNotHappen), ResultUnknown)
	rapid.Check(t, func(r *rapid.T) {
		events := slices.Clone(l.events)
		for i := range events {
			e := &events[i]
			if i > 0 {
				e.From = events[i-1].To
			}
			if rapid.IntRange(0, 2).Draw(r, "spoil") > 0 {
				continue
			}
			e.Kind = Kind(rapid.SampledFrom(kinds).Draw(r, "kind"))
			e.To = State(rapid.SampledFrom(states).Draw(r, "to"))
			e.Data = rapid.SampledFrom([]json.RawMessage{e.Data, []byte(`{}`), []byte(`null`), l.events[4].Data, l.events[5].Data}).Draw(r, "data")
		}
		a, err := Fold(events)
		if err == nil {
			a.DueAt()
			a.Statement(noon)
			a.Work()
			a.OpenAttempt()
			a.StateAt(noon)
		}
	})
}
