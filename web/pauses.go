package web

import (
	"context"
	"time"

	"github.com/a-h/templ"
)

// Pause is a tool, a client or a scope of which nothing is proposed, taken or
// sent until somebody lets it go on.
type Pause struct {
	ID     string
	Kind   string // tool, client or scope
	Name   Text
	By     Text
	Reason Text
	Since  time.Time
	Ended  time.Time // zero while it is paused
}

// what names what is paused.
func (p Pause) what() Msg { return msg("pause.what_"+p.Kind, "name", p.Name) }

// words says what is paused, by whom, since when and why.
func (p Pause) words() Msg {
	return msg("warning.line", "claim", bold{msg("pause.is", "what", p.what())},
		"rest", msg("pause.rest", "by", p.By, "at", shown{p.Since, bothMinutes}, "why", p.Reason))
}

// since says by whom it was paused and when, in a few words.
func (p Pause) since() Msg { return msg("pause.by_since", "by", p.By, "at", shown{p.Since, Minute}) }

// PausesPage lists what is and was paused, at /pauses.
type PausesPage struct {
	Running []Pause
	Ended   []Pause // the latest first
	Manage  bool    // the viewer may pause and let go on
}

// PauseForm asks what to pause and why: POST /pauses with kind, value and
// reason.
type PauseForm struct {
	Op      string
	Kind    string
	Value   Own
	Reason  Own
	Tools   []string // names to choose from
	Refused *Refusal
}

// PauseKinds lists what can be paused.
func PauseKinds() []string { return []string{"tool", "client", "scope"} }

// CancelOpenPage asks whether everything of a client that has not run is to be
// cancelled: POST /clients/{client}/cancel-open with reason.
type CancelOpenPage struct {
	Op       string
	ClientID string
	Client   Text
	Open     Count // drafts, proposals and approved ones
	First    []LinkedAction
	Paused   bool
	Reason   Own
	Refused  *Refusal
}

func pauseKindOptions(ctx context.Context) []Option {
	var all []Option
	for _, k := range PauseKinds() {
		all = append(all, Option{k, Outside(T(ctx, "pause.kind_"+k))})
	}
	return all
}

func pauseEndURL(id string) templ.SafeURL { return templ.SafeURL("/pauses/" + id + "/end") }
