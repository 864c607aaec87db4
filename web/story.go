package web

import "time"

// Told is one entry of an action's timeline: an event with the facts that its
// sentence needs. Kinds are those of the event log.
type Told struct {
	At         time.Time
	Kind       string // drafted, proposed, decided, …
	To         State  // "" when the state stayed
	By         Text
	For        Text
	System     Text
	Revision   int
	Number     int // of an attempt
	Step       Text
	Approve    bool
	Role       string
	Method     string
	ReasonCode string
	Reason     Text // why it was proposed
	Note       Text
	Looked     time.Duration // how long the decider had it open; 0 unknown
	Outcome    string
	Proves     string
	HTTPStatus int
	Ref        Text
	Key        string
	Tool       Text
	Version    Text // of the object
	Holds      string
	Error      Text
	Other      bool   // it is about another object or operation
	Why        string // of a case
	Code       string // of a failure
	Verdict    string
	More       []Text // further facts, one line each
}

// line is the entry's sentence.
func (t Told) line() Msg {
	by := any(t.By)
	if t.By.Empty() {
		by = msg("story.the_console")
	}
	key := "story." + t.Kind
	switch t.Kind {
	case "decided":
		key = "story.rejected"
		if t.Approve {
			key = "story.approved"
		}
		by = bold{by}
	case "proposed", "drafted", "submitted":
		if t.For.Empty() {
			key += "_for_nobody"
		}
	case "attempted":
		if !t.Step.Empty() {
			key += "_step"
		}
	case "receipt":
		key = "story.receipt." + outcomeWord(t.Outcome)
	case "observation":
		switch {
		case t.Other:
			key = "story.observation_other"
		case !t.Error.Empty():
			key = "story.observation_failed"
		case t.Holds == "yes" || t.Holds == "no":
			key = "story.observation_" + t.Holds
		default:
			key = "story.observation_plain"
		}
	case "verdict":
		key = "story.verdict." + t.Verdict
	}
	key = firstKnown(key, "story.else")
	return msg(key, "by", by, "for", bold{t.For}, "revision", t.Revision, "number", t.Number, "step", code{t.Step},
		"tool", code{t.Tool}, "kind", t.Kind, "outcome", outcomeWords(t.Outcome))
}

// details are the soft lines below it.
func (t Told) details() []Msg {
	var out []Msg
	add := func(m Msg) { out = append(out, m) }
	if !t.Reason.Empty() {
		add(msg("story.reason", "reason", t.Reason))
	}
	if t.Kind == "proposed" && t.Revision > 1 || t.Kind == "revised" {
		add(msg("story.revision", "revision", t.Revision))
	}
	t.decisionDetails(add)
	t.runDetails(add)
	if !t.Note.Empty() {
		add(msg("story.note", "note", t.Note))
	}
	for _, m := range t.More {
		add(msg("list.single", "a", m))
	}
	return out
}

func (t Told) decisionDetails(add func(Msg)) {
	if t.Kind != "decided" {
		return
	}
	if t.Role != "" {
		add(msg("story.as", "role", role(t.Role), "method", method(t.Method)))
	}
	if t.ReasonCode != "" {
		add(msg("list.single", "a", reasonWords(t.ReasonCode)))
	}
	if t.Looked > 0 {
		add(msg("story.looked", "span", t.Looked))
	}
}

func (t Told) runDetails(add func(Msg)) {
	if t.Key != "" {
		add(msg("story.key", "key", code{Outside(t.Key)}))
	}
	if t.HTTPStatus > 0 {
		add(msg("story.status", "status", t.HTTPStatus))
	}
	if t.Proves != "" {
		add(msg("story.proves", "level", msg("proves."+t.Proves)))
	}
	if !t.Ref.Empty() {
		add(msg("story.ref", "ref", code{t.Ref}))
	}
	if !t.Version.Empty() {
		add(msg("story.version", "version", t.Version))
	}
	if !t.Error.Empty() {
		add(msg("list.single", "a", t.Error))
	}
	if t.Other && t.Kind != "observation" {
		add(msg("story.about_other"))
	}
	if t.Why != "" {
		add(msg(firstKnown("why."+t.Why, "why.else"), "why", Outside(t.Why)))
	}
	if t.Code != "" {
		add(failureWords(t.Code))
	}
}

func outcomeWord(outcome string) string {
	switch outcome {
	case "SUCCESS":
		return "success"
	case "FAILURE":
		return "failure"
	case "DIFFERS":
		return "differs"
	}
	return "unknown"
}

func outcomeWords(outcome string) Msg { return msg("outcome." + outcomeWord(outcome)) }

// method says how somebody had signed in.
func method(m string) any {
	if key := "method." + m; known(key) {
		return msg(key)
	}
	return Outside(m)
}

// failureWords says why nothing was done, with the code that the executor gave.
func failureWords(reported string) Msg {
	said := soft{code{Outside(reported)}}
	if key := "failure." + reported; known(key) {
		return msg("failure.with", "words", msg(key), "code", said)
	}
	return msg("failure.else", "code", said)
}
