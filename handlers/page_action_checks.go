package handlers

import (
	"bytes"
	"encoding/json"

	"countersign/action"
	"countersign/action/contract"
	"countersign/web"
)

// checks is what was looked at for whoever decides.
func (v actionView) checks() web.Checks {
	c := web.Checks{PayloadHash: v.a.PayloadHash, ProposalHash: v.a.ProposalHash, Permission: v.permission()}
	if v.a.ObjectVersion != nil {
		c.VersionProposed = web.Outside(*v.a.ObjectVersion)
	}
	c.VersionSeen = web.Outside(v.versionSeen())
	c.Recent = -1
	if v.a.Target != nil {
		c.Recent = len(v.onTarget)
		if len(v.onTarget) > 0 {
			last := v.onTarget[0]
			c.RecentLastAt = last.CreatedAt
			if last.Tool == v.a.Tool && last.Unreadable == nil {
				c.RecentLast = lineOf(effectOf(v.tool.Contract, v.lang, last.Payload))
			}
		}
	}
	for _, r := range v.rejected {
		if r.Unreadable != nil { // it was rejected, whoever did
			c.Rejections = append(c.Rejections, web.Rejection{ActionID: r.ID, At: r.UpdatedAt})
			continue
		}
		d := r.Decisions[len(r.Decisions)-1]
		c.Rejections = append(c.Rejections, web.Rejection{ActionID: r.ID, By: web.Outside(d.By.Name), At: d.At, ReasonCode: d.ReasonCode})
	}
	return c
}

// elsewhere reports whether the program alone says what this is about, and nothing
// of what will be sent is that object's id.
func (v actionView) elsewhere() bool {
	if v.tool.Contract.Target != nil || v.a.Target == nil {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(v.a.Payload))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return true
		}
		text, is := token.(string)
		if n, number := token.(json.Number); number {
			text, is = n.String(), true
		}
		if is && text == v.a.Target.ID {
			return false
		}
	}
}

// lineOf is an effect as one text.
func lineOf(e web.Effect) web.Text {
	if !e.Sentence.Empty() {
		return e.Sentence
	}
	return e.Title
}

func (v actionView) versionSeen() string {
	var latest action.Observation
	for _, o := range v.a.Observations {
		if o.Version != "" && o.Revision == v.a.Revision && !o.Seen().Before(latest.Seen()) {
			latest = o
		}
	}
	return latest.Version
}

func (v actionView) permission() web.Permission {
	p := web.Permission{Named: v.tool.Contract.Execution.Permission != "", Actor: actorText(v.a.Actor)}
	for _, o := range v.a.Observations {
		if o.Tool != v.tool.Contract.Execution.Permission || o.Failed || o.Tool == "" {
			continue
		}
		var answer struct {
			Allowed bool `json:"allowed"`
		}
		if json.Unmarshal(o.Snapshot, &answer) == nil {
			p.Checked, p.Allowed, p.Source, p.At = true, answer.Allowed, systemOf(o.Tool), o.ObservedAt
		}
	}
	return p
}

func (v actionView) success() web.Success {
	s := web.Success{Proves: string(v.tool.Contract.Execution.Proves), System: systemOf(v.a.Tool),
		Meaning: web.Outside(v.tool.Contract.Display.Proves.In(v.lang))}
	for _, p := range v.tool.Contract.Execution.Postconditions {
		s.Checks = append(s.Checks, web.Outside(conditionText(p)))
	}
	return s
}

func conditionText(c contract.Condition) string {
	field := c.Field
	if len(field) > 0 && field[0] == '/' {
		field = field[1:]
	}
	return c.Read + " " + field + ": " + c.Expect
}
