package web

import (
	"context"
	"time"
)

// State is where an action stands in its life.
type State string

// The twelve states.
const (
	Draft     State = "draft"
	Proposed  State = "proposed"
	Confirmed State = "confirmed"
	Executing State = "executing"
	Accepted  State = "accepted"
	Applied   State = "applied"
	Failed    State = "failed"
	Conflict  State = "conflict"
	Unknown   State = "result_unknown"
	Rejected  State = "rejected"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// States lists the twelve in the order of an action's life.
func States() []State {
	return []State{Draft, Proposed, Confirmed, Executing, Accepted, Applied,
		Failed, Conflict, Unknown, Rejected, Expired, Cancelled}
}

// tone is the class for the few states that carry colour.
func (s State) tone() string {
	switch s {
	case Unknown:
		return "care"
	case Failed, Conflict:
		return "bad"
	}
	return ""
}

// decided reports whether the time for decisions is over.
func (s State) decided() bool { return s != Draft && s != Proposed }

// waits reports whether it can still run.
func (s State) waits() bool { return s == Draft || s == Proposed || s == Confirmed }

// How tells apart what one state's word does not.
type How string

// How an action came to its state.
const (
	HowPlain    How = ""
	HowReadBack How = "read_back" // applied: the object was read and agrees
	HowReported How = "reported"  // applied: the system's word only
	HowSettled  How = "settled"   // applied, failed: a person's verdict
	HowUnasked  How = "unasked"   // confirmed: nobody had to approve it
	HowLapsed   How = "lapsed"    // expired after approval, before it ran
	HowFinding  How = "finding"   // result_unknown: a person found that part of it happened
	HowInPart   How = "in_part"   // result_unknown: some steps are proven done and all others not
	HowGone     How = "gone"      // conflict: the object is not there
	HowUnrun    How = "unrun"     // failed: the business system says, by key, that nothing was executed
	HowShort    How = "short"     // conflict: what was read before it ran asks for more people
	HowLinked   How = "linked"    // applied, failed: an action that is linked to it did the rest, undid it or replaced it
)

// Status is a state with what its sentence refers to.
type Status struct {
	State  State
	How    How
	System Text      // the business system; empty is "the system"
	Person Text      // who settled
	Second Text      // who agreed to that; empty when one was enough
	At     time.Time // when it was read back
}

// Words is the status as a sentence.
func (s Status) Words() Msg {
	system := any(s.System)
	if s.System.Empty() {
		system = msg("state.the_system")
	}
	key := "state." + string(s.State)
	switch {
	case s.How == HowReadBack && s.At.IsZero():
		key += ".read_back_untimed"
	case s.How == HowSettled && !s.Second.Empty():
		key = firstKnown(key+".settled_two", key+".plain")
	case s.How != HowPlain:
		key = firstKnown(key+"."+string(s.How), key+".plain")
	default:
		key += ".plain"
	}
	return msg(key, "system", system, "person", s.Person, "second", s.Second,
		"at", shown{s.At, func(ctx context.Context, t time.Time) string { return Minute(ctx, t) }})
}

// role is the word for a role; a contract may ask for roles that only its
// owner knows, which stand as written.
func role(r string) any { return named("role", r) }

// named is the word that a table of the locale files has for a code, or the
// code as written.
func named(table, code string) any {
	if key := table + "." + code; known(key) {
		return msg(key)
	}
	return OutsideName(code)
}

// roles joins roles in words.
func roles(rs []string) Msg {
	parts := make([]any, len(rs))
	for i, r := range rs {
		parts[i] = role(r)
	}
	return list("list.comma", parts)
}

// list joins things in pairs from the left, the way the words of key do.
func list(key string, parts []any) Msg {
	if len(parts) == 0 {
		return Msg{}
	}
	out := msg("list.single", "a", parts[0])
	for _, p := range parts[1:] {
		out = msg(key, "a", out, "b", p)
	}
	return out
}

// texts turns outside texts into what list takes.
func texts(ts []Text) []any {
	out := make([]any, len(ts))
	for i, t := range ts {
		out[i] = t
	}
	return out
}

// both joins names: "Ana Ruiz, Mia Chen and Tom Okafor".
func both(names []Text) Msg {
	if len(names) < 2 {
		return list("list.comma", texts(names))
	}
	last := len(names) - 1
	return msg("list.and", "a", list("list.comma", texts(names[:last])), "b", names[last])
}

// either joins names as alternatives: "Ana Ruiz, Mia Chen or Tom Okafor".
func either(names []Text) Msg {
	if len(names) < 2 {
		return list("list.comma", texts(names))
	}
	last := len(names) - 1
	return msg("list.or", "a", list("list.comma", texts(names[:last])), "b", names[last])
}
