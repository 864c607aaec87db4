package web

import (
	"context"
	"slices"
	"time"
)

func (p CasePage) heldWords() Msg {
	switch h := p.Holder; {
	case h == nil:
		return msg("triage.nobody_has")
	case h.Mine && h.Until.IsZero():
		return msg("case.you_have", "at", shown{h.Since, Minute})
	case h.Mine:
		return msg("case.you_have_until", "at", shown{h.Since, Minute}, "until", shown{h.Until, Minute})
	case h.Until.IsZero():
		return msg("case.has", "who", bold{h.Name}, "at", shown{h.Since, Minute})
	default:
		return msg("case.has_until", "who", bold{h.Name}, "at", shown{h.Since, Minute}, "until", shown{h.Until, Minute})
	}
}

// sentWords says how often the request left, and when last.
func (p CasePage) sentWords() Msg {
	var left []Sending
	for _, s := range p.Sent {
		if !s.NotSent {
			left = append(left, s)
		}
	}
	switch len(left) {
	case 0:
		return msg("case.never_sent", "n", len(p.Sent))
	case 1:
		return msg("case.sent_once", "at", left[0].At, "by", left[0].By)
	}
	last := left[len(left)-1]
	return msg("case.sent_times", "times", len(left), "first", left[0].At, "at", last.At, "by", last.By)
}

func (p CasePage) unansweredKey() string {
	for _, s := range p.Sent {
		if !s.NotSent {
			return "case.no_answer"
		}
	}
	return "case.nothing_to_answer"
}

// words says what came back, and what that proves.
func (a Answer) words() Msg {
	if a.Waited >= time.Second && a.Ref.Empty() {
		return msg("case.waited", "span", a.Waited, "at", a.At)
	}
	return Receipt{Outcome: a.Outcome, HTTPStatus: a.HTTPStatus, At: a.At}.words()
}

func (p CasePage) lateWords(now time.Time) Msg {
	switch {
	case p.LateUntil.IsZero():
		return msg("case.late_never")
	case !now.Before(p.LateUntil):
		return msg("case.late_over", "at", shown{p.LateUntil, BothZones})
	}
	return msg("case.late_until", "at", bold{shown{p.LateUntil, BothZones}})
}

func (s Side) words() Msg {
	if s.Proves != "" {
		return msg("case.side_proves", "source", s.Source, "at", s.At, "level", msg("proves."+s.Proves))
	}
	return msg("case.side", "source", s.Source, "at", s.At)
}

func (c Comparison) from() Source { return Source{Name: c.Source, At: c.At} }

// table is the comparison as a field table.
func (c Comparison) table() FieldTable {
	t := FieldTable{Kind: TableCase, Left: Source{Supposed: true}, Right: c.from()}
	for _, m := range c.Differ {
		f := Field{Label: m.Label, Raw: m.Raw, Left: m.Expected, Right: m.Observed, Group: Changed}
		if m.Before != nil {
			f.notes = append(f.notes, msg("case.before", "value", *m.Before))
		}
		if len(m.Forms) > 0 {
			f.notes = append(f.notes, msg("case.compared", "forms", formWords(m.Forms)))
		}
		t.Fields = append(t.Fields, f)
	}
	return t
}

// formWords names what was made the same before comparing.
func formWords(forms []string) Msg {
	var parts []any
	for _, f := range forms {
		parts = append(parts, named("form_of", f))
	}
	return list("list.comma", parts)
}

func evidenceWords(kind string) any { return named("evidence", kind) }

func verdictWords(v string) any { return named("verdict", v) }

// status is the state that the verdict leads to: after "partly" it stays unknown,
// with a finding.
func (o VerdictOutcome) status() Status {
	if o.Verdict == "partly" && o.Status.State == Unknown {
		o.Status.How = HowFinding
	}
	return o.Status
}

// blockWords says what becomes of the block.
func (o VerdictOutcome) blockWords() Msg {
	return msg(firstKnown("settle.block_"+o.Block, "settle.block_none"), "at", shown{o.Until, BothZones})
}

func (s Settlement) words() Msg {
	if s.Verdict == "" {
		return s.found()
	}
	return msg("case.verdict_by", "verdict", bold{verdictWords(s.Verdict)}, "who", s.By, "role", role(s.Role))
}

// found says how it was found out.
func (s Settlement) found() Msg { return msg(firstKnown("case.found_"+s.Found, "case.found_asked")) }

func (s Settlement) title() string {
	if s.Second.Refused {
		return "case.earlier_refused"
	}
	return "case.earlier"
}

func (s Seconder) words() Msg {
	if s.Refused {
		return msg("second.refused_by", "who", s.By, "role", role(s.Role))
	}
	return msg("second.confirmed_by", "who", s.By, "role", role(s.Role))
}

func (s SecondPerson) whyNot() Msg {
	switch {
	case len(s.Can) == 0 && s.Mine:
		return msg("second.mine")
	case len(s.Can) == 0:
		return msg("second.cannot")
	case s.Mine:
		return msg("second.mine_can", "names", either(s.Can))
	}
	return msg("second.cannot_can", "names", either(s.Can))
}

// againWords names the safe retry with the end of its time.
func (p CasePage) againWords(now time.Time) Msg {
	if p.Key.Until.IsZero() || p.Key.gone(now) {
		return msg("step.again")
	}
	return msg("step.again_until", "system", systemWords(p.Key.System), "at", shown{p.Key.Until, Minute})
}

// safe reports whether sending again is safe, by a person now or by an executor
// soon.
func (s Step) safe() bool { return s.WhyNot == "" || s.WhyNot == "soon" || s.WhyNot == "wanted" }

// whyNot says why a step cannot be taken now.
func (p CasePage) whyNot(code string) Msg {
	var holder any = Text{}
	if p.Holder != nil {
		holder = p.Holder.Name
	}
	return msg("step.why_not_"+code, "system", systemWords(p.System), "who", holder, "at", shown{p.LateUntil, BothZones})
}

// readingOptions are the readings that a verdict can rest on, the latest first, and
// of the same content the latest. Without one there is only the empty choice.
func (p CasePage) readingOptions(ctx context.Context) []Option {
	out := []Option{{"", Outside(T(ctx, "settle.reading_none"))}}
	for _, s := range slices.Backward(p.Snapshots) {
		if s.Hash != "" && !s.Other && !slices.ContainsFunc(out, func(o Option) bool { return o.Value == s.Hash }) {
			words := msg("settle.reading_one", "at", shown{s.At, Clock}, "tool", Outside(s.Tool), "read", s.words(), "hash", Outside(Fingerprint(s.Hash)))
			out = append(out, Option{s.Hash, Outside(words.Plain(ctx))})
		}
	}
	return out
}

func evidenceOptions(ctx context.Context) []Option {
	out := []Option{{"", Outside(T(ctx, "decide.choose"))}}
	for _, k := range EvidenceKinds() {
		out = append(out, Option{k, Outside(T(ctx, "evidence."+k))})
	}
	return out
}

func (s Snapshot) words() Msg {
	switch {
	case s.Version.Empty() && s.First:
		return msg("snapshot.first", "from", s.Source)
	case s.Version.Empty():
		return msg("snapshot.read", "from", s.Source)
	case s.First:
		return msg("snapshot.first_version", "from", s.Source, "version", s.Version)
	}
	return msg("snapshot.read_version", "from", s.Source, "version", s.Version)
}
