package web

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Effect is what an action would do, as one line: the sentence of its
// contract, or for a bare contract the title and the first required fields.
type Effect struct {
	Unread   Text // the id of an action whose history cannot be read: nothing else is known of it
	Sentence Text
	Title    Text
	Parts    []Part
}

// Part is one field of a bare contract's effect.
type Part struct {
	Name  Text
	Value Text
}

// foldCommand finds out what is wrong with a history.
var foldCommand = Outside("console fold --check")

// bare reports whether the contract states no sentence.
func (e Effect) bare() bool { return e.Sentence.Empty() }

// short is the effect in a few words, for buttons and messages.
func (e Effect) short() Text {
	if !e.Unread.Empty() {
		return e.Unread
	}
	if e.bare() {
		return e.Title
	}
	return e.Sentence
}

// plain is the effect without elements, for titles.
func (e Effect) plain() string {
	if !e.Unread.Empty() {
		return e.Unread.Plain()
	}
	if !e.bare() {
		return e.Sentence.Plain()
	}
	parts := []string{e.Title.Plain()}
	for _, p := range e.Parts {
		parts = append(parts, p.Name.Plain()+": "+p.Value.Plain())
	}
	return strings.Join(parts, " ")
}

// titleOf cuts the effect for a browser's title, where nothing can be opened.
func titleOf(ctx context.Context, e Effect) string {
	const most = 80
	runes := []rune(e.plain())
	if len(runes) <= most {
		return string(runes)
	}
	return T(ctx, "text.title_cut", "head", string(runes[:most]), "n", len(runes)-most)
}

// Target is the object that an action touches.
type Target struct {
	Type Text
	ID   Text // made with OutsideName
}

// NewTarget makes a target; nil when both parts are empty.
func NewTarget(kind, id string) *Target {
	if kind == "" && id == "" {
		return nil
	}
	return &Target{Type: Outside(kind), ID: OutsideName(id)}
}

// typeWords is the word for a common kind of object, or what the contract or
// the program calls it.
func (t Target) typeWords() any {
	if key := "target_type." + t.Type.s; known(key) {
		return msg(key)
	}
	return t.Type
}

// Rule is one approval rule of a contract, or one need that it led to.
type Rule struct {
	Role    string
	Count   int
	StepUp  bool
	When    Text // the expression; empty or "true" is always
	Assumed bool // the contract states no rule
}

func (r Rule) always() bool { return r.When.Empty() || r.When.s == "true" }

// Words is the rule as a sentence.
func (r Rule) Words() Msg {
	key := "rule.people"
	if r.StepUp {
		key = "rule.people_step_up"
	}
	who := msg(key, "n", r.Count, "first", numeral("numeral_first", r.Count), "role", role(r.Role))
	switch {
	case r.Assumed:
		return msg("rule.assumed", "who", who)
	case r.always():
		return msg("rule.always", "who", who)
	}
	return msg("rule.when", "who", who, "when", code{r.When})
}

// numeral is a small count in words where a language has them.
func numeral(form string, n int) any {
	if n >= 1 && n <= 9 {
		return msg(form + "." + string(rune('0'+n)))
	}
	return n
}

// needsWords says who is needed, several roles joined.
func needsWords(rules []Rule) Msg {
	var parts []any
	for _, r := range rules {
		parts = append(parts, msg("rule.people_short", "n", r.Count, "count", numeral("numeral", r.Count), "role", role(r.Role)))
	}
	return list("list.and", parts)
}

// Warning is one thing to know before deciding; a page shows three at most,
// the gravest first.
type Warning struct {
	Kind  WarningKind
	claim Msg
	rest  Msg
}

// WarningKind orders warnings by weight, gravest first.
type WarningKind int

// The warnings.
const (
	WarnLookAlike WarningKind = iota
	WarnHidden
	WarnAbsent
	WarnElsewhere
	WarnChanged
	WarnOld
	WarnRejectedBefore
	WarnNobody
	WarnClaimDiffers
	WarnNoCurrency
)

// short is the warning in two words, for a row.
func (k WarningKind) short() Msg {
	switch k {
	case WarnLookAlike:
		return msg("warning.short.look_alike")
	case WarnHidden:
		return msg("warning.short.hidden")
	case WarnAbsent:
		return msg("warning.short.absent")
	case WarnElsewhere:
		return msg("warning.short.elsewhere")
	case WarnChanged:
		return msg("warning.short.changed")
	case WarnOld:
		return msg("warning.short.old")
	case WarnRejectedBefore:
		return msg("warning.short.rejected")
	case WarnNobody:
		return msg("warning.short.nobody")
	case WarnClaimDiffers:
		return msg("warning.short.claim")
	default:
		return msg("warning.short.no_currency")
	}
}

// WarningLookAlike warns of a target or id that only looks like another.
func WarningLookAlike(t Text) Warning {
	plain, _ := t.LooksLike()
	return Warning{WarnLookAlike, msg("warning.look_alike.claim", "plain", plain), msg("warning.look_alike.rest")}
}

// WarningHiddenIn warns of hidden characters in a number of fields.
func WarningHiddenIn(fields int, bidi bool) Warning {
	rest := msg("warning.hidden.rest")
	if bidi {
		rest = msg("warning.hidden.rest_bidi")
	}
	return Warning{WarnHidden, msg("warning.hidden.claim", "n", fields), rest}
}

// WarningNotThere warns that what it is about was not found.
func WarningNotThere(m Missed) Warning {
	return Warning{WarnAbsent, msg("warning.absent.claim", "what", m.answer()), msg("warning.absent.rest")}
}

// WarningElsewhere warns that the object which the request names stands nowhere
// in what will be sent.
func WarningElsewhere(t *Target) Warning {
	return Warning{WarnElsewhere, msg("warning.elsewhere.claim", "type", t.typeWords(), "id", t.ID), msg("warning.elsewhere.rest", "id", t.ID)}
}

// WarningChangedSince warns that the object moved on since the proposal.
func WarningChangedSince(proposed, seen Text) Warning {
	return Warning{WarnChanged, msg("warning.changed.claim", "proposed", proposed, "seen", seen), msg("warning.changed.rest")}
}

// WarningOld warns that the object was read some time ago, and only then.
func WarningOld(at time.Time) Warning {
	return Warning{WarnOld, msg("warning.old.claim", "ago", shown{at, Ago}), msg("warning.old.rest")}
}

// WarningRejected warns that the same content was rejected before.
func WarningRejected(r Rejection) Warning {
	return Warning{WarnRejectedBefore,
		msg("warning.rejected.claim", "by", r.By, "ago", shown{r.At, Ago}),
		msg("warning.rejected.rest", "reason", reasonWords(r.ReasonCode))}
}

// WarningNobodyCan warns that nobody with the needed role is left to approve.
func WarningNobodyCan(rules []Rule) Warning {
	return Warning{WarnNobody, msg("warning.nobody.claim"), msg("warning.nobody.rest", "who", needsWords(rules))}
}

// WarningClaim warns that the program states another current value than was read.
func WarningClaim(field Text) Warning {
	return Warning{WarnClaimDiffers, msg("warning.claim.claim", "field", field), msg("warning.claim.rest")}
}

// WarningNoCurrency warns of an amount without a currency.
func WarningNoCurrency(amount Text) Warning {
	return Warning{WarnNoCurrency, msg("warning.no_currency.claim"), msg("warning.no_currency.rest", "amount", amount)}
}

// gravest sorts warnings and keeps three.
func gravest(ws []Warning) (first []Warning, more int) {
	sorted := slices.Clone(ws)
	slices.SortStableFunc(sorted, func(a, b Warning) int { return int(a.Kind) - int(b.Kind) })
	if len(sorted) <= 3 {
		return sorted, 0
	}
	return sorted[:3], len(sorted) - 3
}
