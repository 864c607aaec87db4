package web

// RunStep is one of the requests that an action takes, in their order, under a key
// of its own, and what is known of it.
type RunStep struct {
	Name    Text
	State   string // done, not_done or unknown
	Refused bool   // not_done: it was sent, and definitely refused
	Sent    int    // requests that may have reached the system
	Key     Text
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
