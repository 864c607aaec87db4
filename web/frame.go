package web

import (
	"context"
	"net/url"
	"slices"
)

// Own is what the signed-in person typed, given back when a form is refused.
// It is the only input that a page repeats byte for byte, and only into the
// field that it came from: never put anything else into an Own.
type Own string

// Section is the part of the navigation that a page belongs to.
type Section string

// The sections.
const (
	NoSection Section = ""
	Approvals Section = "approvals"
	Triage    Section = "triage"
	History   Section = "history"
	Overview  Section = "overview"
	Tools     Section = "tools"
	People    Section = "people"
	Clients   Section = "clients"
	Pauses    Section = "pauses"
	Tasks     Section = "tasks"
	Account   Section = "account"
	Reconcile Section = "reconciliation"
	Guide     Section = "guide"
)

// Frame is what every page has around it.
type Frame struct {
	Person  *Person // nil when nobody is signed in
	Section Section
	Path    string     // of this page with its query, to come back to after switching the language
	Waiting Count      // actions that need the person; shown beside Approvals
	Unknown Count      // cases that need a person; shown beside Unknown results
	Flash   *Flash     // what was just recorded
	Demo    bool       // a demo, which has a guide
	Back    *GuideBack // the step of the guide that the page belongs to
}

// Person is who is signed in.
type Person struct {
	Name  Text
	Roles []string
}

// Admin reports whether people and clients may be changed.
func (p *Person) Admin() bool {
	if p == nil {
		return false
	}
	for _, r := range p.Roles {
		if r == "admin" {
			return true
		}
	}
	return false
}

// Plays reports whether the person may make things happen in a demo's company.
func (p *Person) Plays() bool {
	return p != nil && slices.ContainsFunc(p.Roles, func(r string) bool { return r == "support" || r == "ops" || r == "admin" })
}

// Reconciles reports whether what was compared with business systems is shown to
// the person.
func (p *Person) Reconciles() bool {
	return p != nil && slices.ContainsFunc(p.Roles, func(r string) bool { return r == "ops" || r == "auditor" || r == "admin" })
}

// Triages reports whether unknown results are shown to the person.
func (p *Person) Triages() bool {
	return p != nil && slices.ContainsFunc(p.Roles, func(r string) bool {
		return r == "ops" || r == "auditor" || r == "admin" || r == "support"
	})
}

// Count is a number that may be capped.
type Count struct {
	N    int
	More bool // at least N
}

func (c Count) text(ctx context.Context) string {
	if c.More {
		return Number(ctx, c.N) + "+"
	}
	return Number(ctx, c.N)
}

// Flash says after a redirect what was recorded.
type Flash struct {
	words  Msg
	now    Msg    // what has become of it
	action string // id of the action it links to
}

// FlashDecided says which decision was recorded, and what became of the action
// since. needs is how many approvals are still missing after an approval.
func FlashDecided(actionID string, e Effect, approved bool, needs int, s Status) *Flash {
	key := "flash.rejected"
	if approved {
		key = "flash.approved"
	}
	return &Flash{words: msg(key, "effect", bold{e.short()}), now: decidedNow(approved, needs, s), action: actionID}
}

func decidedNow(approved bool, needs int, s Status) Msg {
	switch {
	case !approved:
		return msg("flash.will_not")
	case needs > 0:
		return msg("flash.needs_more", "n", needs)
	case s.State == Confirmed:
		return msg("flash.can_run")
	}
	return msg("list.single", "a", bold{s.Words()})
}

// Now is what became of what a flash is about, without elements.
func (f *Flash) Now(ctx context.Context) string { return f.now.Plain(ctx) }

// Done is a plain success that a page says after a redirect.
type Done string

// What can have been done besides decisions.
const (
	DonePasswordChanged  Done = "password_changed"
	DonePreferencesSaved Done = "preferences_saved"
	DoneSessionEnded     Done = "session_ended"
	DoneSessionsEnded    Done = "sessions_ended"
	DonePersonCreated    Done = "person_created"
	DonePersonSaved      Done = "person_saved"
	DonePersonDisabled   Done = "person_disabled"
	DonePersonEnabled    Done = "person_enabled"
	DoneClientRevoked    Done = "client_revoked"
	DoneKeyRevoked       Done = "key_revoked"
	DonePaused           Done = "paused"
	DoneGoesOn           Done = "goes_on"
	DoneOpenCancelled    Done = "open_cancelled"
	DoneTaskExtended     Done = "task_extended"
	DoneTaskEnded        Done = "task_ended"
	DoneSignedOut        Done = "signed_out"
)

// FlashDone says that something was done.
func FlashDone(d Done) *Flash { return &Flash{words: msg("flash." + string(d))} }

// urlWith builds a path with a query, leaving out what is empty. Pairs are
// names and values in turn.
func urlWith(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
