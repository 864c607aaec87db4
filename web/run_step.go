package web

import "time"

// RunStep is one of the requests that an action takes, in their order, under a key
// of its own, and what is known of it.
type RunStep struct {
	Name    Text
	State   string // done, not_done or unknown
	Refused bool   // not_done: it was sent, and definitely refused
	Sent    int    // requests that may have reached the system
	Key     Text
	Earlier string    // id of the action that did it before, when it was another
	At      time.Time // when Earlier did
}

// shape is the drawing of its state.
func (p RunStep) shape() State {
	switch {
	case p.State == "done":
		return Applied
	case p.State == "not_done" && p.Refused:
		return Failed
	case p.State == "not_done":
		return Draft
	}
	return Unknown
}

func (p RunStep) words() Msg {
	if p.Earlier != "" {
		return msg("part.before")
	}
	if p.State == "not_done" && !p.Refused {
		return msg("part.unsent")
	}
	return msg("part." + p.State)
}

func (p RunStep) sent() Msg {
	if p.Sent == 0 {
		return msg("part.never")
	}
	return msg("part.sent", "n", p.Sent)
}

// resumed says what was done before and what is left; nothing when an action does
// all there is to do.
func resumed(all []RunStep) Msg {
	var done, missing []any
	for _, p := range all {
		if p.Earlier != "" {
			done = append(done, msg("part.done_at", "name", p.Name, "at", shown{p.At, Minute}))
		} else {
			missing = append(missing, p.Name)
		}
	}
	if len(done) == 0 {
		return Msg{}
	}
	return msg("part.resumed", "done", bold{list("list.comma", done)}, "missing", bold{list("list.comma", missing)})
}
