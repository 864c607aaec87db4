package action

import (
	"encoding/json"
	"fmt"
	"slices"
)

// openCase opens a case, or says anew what an open one is about. A closed one
// is kept.
func (a *Action) openCase(c *Case) {
	if c == nil {
		return
	}
	if was := a.Case; was != nil && was.ID == c.ID {
		now := *was
		now.Kind, now.Why, now.Believed, now.Ground, now.News, now.Other = c.Kind, c.Why, c.Believed, c.Ground, c.News, c.Other
		a.Case = &now
		return
	} else if was != nil {
		a.PastCases = append(slices.Clone(a.PastCases), *was)
	}
	a.Case = c
}

func (a *Action) setCase(change func(*Case)) {
	c := *a.Case
	change(&c)
	a.Case = &c
}

// closeCase ends the open case with an event. What still waited does not count.
func (a *Action) closeCase(e Event) {
	a.setCase(func(c *Case) {
		c.retire(c.Pending)
		c.Open, c.Holder, c.Pending, c.ClosedAt, c.ClosedBy = false, nil, nil, e.At, e.Op
	})
}

// retire keeps a verdict that does not stand any more.
func (c *Case) retire(v *Verdict) {
	if v != nil {
		c.Earlier = append(slices.Clone(c.Earlier), *v)
	}
}

// void takes back what waits for a second person, and, when the proof says the
// contrary, a finding that nothing happened: something new is known.
func (a *Action) void(finding bool) {
	if a.CaseID() == "" {
		return
	}
	a.setCase(func(c *Case) {
		c.retire(c.Pending)
		c.Pending = nil
		if finding && c.Verdict != nil && c.Verdict.Verdict == DidNotHappen {
			c.retire(c.Verdict)
			c.Verdict = nil
		}
	})
}

func (a *Action) absorbHolding(e Event) error {
	var d custody
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	if a.Case == nil {
		return fmt.Errorf("there is no case")
	}
	a.setCase(func(c *Case) {
		c.Holder = d.Holder
		switch e.Kind {
		case KindAskedAgain:
			c.Again, c.AgainAt = c.Again+1, e.At
		case KindSendAgain:
			c.SendAgain = true
		}
	})
	return nil
}

func (a *Action) absorbVerdict(e Event) error {
	var d judged
	var b textBody
	if err := unmarshalBoth(e, &d, &b); err != nil {
		return err
	}
	if a.Case == nil {
		return fmt.Errorf("there is no case")
	}
	second := &Second{Agree: d.Confirms, By: e.By, At: e.At, Note: b.Note}
	a.setCase(func(c *Case) {
		first := c.Pending
		c.Pending = nil
		switch {
		case e.Kind == KindRefused:
			if first != nil {
				v := *first
				v.Second = second
				c.retire(&v)
			}
			return
		case d.Confirms && first != nil:
			v := *first
			v.Second = second
			c.retire(c.Verdict)
			c.Verdict = &v
			return
		}
		v := d.Verdict
		v.Note, v.By, v.At = b.Note, e.By, e.At
		c.retire(first)
		if d.Waits {
			c.Pending, c.Holder = &v, nil
			return
		}
		c.retire(c.Verdict)
		c.Verdict = &v
	})
	return nil
}
