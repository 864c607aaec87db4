package contract

import (
	"fmt"
	"strings"
	"time"

	"countersign/action"
)

// span bounds a duration. Whole durations are whole seconds, all others whole
// microseconds.
type span struct {
	pointer  string
	min, max time.Duration
	whole    bool
}

const longest = 90 * 24 * time.Hour

func spans() []span {
	return []span{
		{"/approval/ttl", time.Second, longest, true},
		{"/approval/confirmation_ttl", time.Second, longest, true},
		{"/execution/key_lifetime", time.Second, longest, false},
		{"/execution/timeout", 10 * time.Millisecond, time.Hour, false},
		{"/execution/lease", time.Second, 24 * time.Hour, false},
		{"/execution/fence_after", 0, longest, false},
		{"/execution/verify/window", 0, 24 * time.Hour, false},
		{"/execution/deadline", time.Second, longest, false},
		{"/execution/reconcile/settle", time.Second, longest, true},
		{"/execution/reconcile/every", time.Minute, longest, true},
		{"/execution/reconcile/window", time.Minute, longest, true},
	}
}

func durationProblems(full *node) []action.FieldError {
	var problems []action.FieldError
	for _, s := range spans() {
		given := full.at(s.pointer)
		if given == nil {
			continue
		}
		if detail := s.wrong(given.text); detail != "" {
			problems = append(problems, one(s.pointer, detail)...)
		}
	}
	return problems
}

func (s span) wrong(text string) string {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return "must be a duration such as \"90s\", \"15m\" or \"24h\""
	case d < s.min || d > s.max:
		return fmt.Sprintf("must be between %s and %s", Duration{s.min}, Duration{s.max})
	case s.whole && d%time.Second != 0:
		return "must be whole seconds"
	case d%time.Microsecond != 0: // moments are stored as finely as that, and would be rounded
		return "must be whole microseconds"
	}
	return ""
}

// fillDefaults adds what the document leaves out and returns the assumptions
// that people should know of.
func fillDefaults(full *node) []Assumption {
	f := &filler{full: full}
	f.say("/mode", stringNode("write"))
	if full.get("entries") == nil {
		f.note("/entries", "every entry point")
	}
	f.say("/object_version", stringNode("optional"))
	if full.get("target") == nil {
		f.note("/target", "named by each request")
	} else {
		f.say("/target/block", stringNode("target"))
	}
	f.say("/approval/ttl", stringNode("15m"))
	f.say("/approval/confirmation_ttl", stringNode("5m"))
	if full.get("mode").text == string(Write) && full.at("/approval/rules") == nil {
		f.note("/approval/rules", "one approval by support")
	}
	if http := full.get("http"); http != nil {
		fillHTTP(http)
	}
	f.execution()
	return f.assumed
}

type filler struct {
	full    *node
	assumed []Assumption
}

func (f *filler) note(pointer, value string) {
	f.assumed = append(f.assumed, Assumption{pointer, value})
}

// put sets a value that is missing, and reports whether it was.
func (f *filler) put(pointer string, value *node) bool {
	tokens := splitPointer(pointer)
	parent := f.full
	for _, token := range tokens[:len(tokens)-1] {
		next := parent.get(token)
		if next == nil {
			next = &node{kind: objectKind}
			parent.set(token, next)
		}
		parent = next
	}
	last := tokens[len(tokens)-1]
	if parent.get(last) != nil {
		return false
	}
	parent.set(last, value)
	return true
}

// say sets a value that is missing and notes it as assumed.
func (f *filler) say(pointer string, value *node) {
	if f.put(pointer, value) {
		f.note(pointer, strings.Trim(string(value.json()), `"`))
	}
}

// fillHTTP completes a request: writes carry the payload and the key.
func fillHTTP(http *node) {
	body, key := "payload", "header"
	switch http.get("method").text {
	case "GET", "HEAD":
		body, key = "none", "none"
	case "DELETE":
		body = "none"
	}
	if http.get("body") == nil {
		http.set("body", stringNode(body))
	}
	if http.get("idempotency") == nil {
		http.set("idempotency", stringNode(key))
	}
}

func (f *filler) execution() {
	f.say("/execution/proves", stringNode("accepted"))
	f.say("/execution/retry", stringNode("never"))
	f.say("/execution/definite_failures", &node{kind: listKind})
	f.say("/execution/conflicts", &node{kind: listKind, items: []*node{number("412")}})
	f.say("/execution/timeout", stringNode("10s"))
	timeout, _ := time.ParseDuration(f.full.at("/execution/timeout").text) // checked before
	f.say("/execution/lease", stringNode(Duration{max(time.Minute, 2*timeout)}.String()))
	f.say("/execution/fence_after", stringNode("24h"))
	f.say("/execution/verify/tries", number("3"))
	f.say("/execution/verify/window", stringNode("20s"))
	f.say("/execution/deadline", stringNode("2m"))
	if f.full.at("/execution/status_query") != nil {
		f.say("/execution/status_query/authoritative_miss", &node{kind: boolKind, text: "false"})
		f.say("/execution/status_query/max_polls", number("6"))
		f.readings(f.full.at("/execution/status_query"), "/execution/status_query/outcome")
	}
	if f.full.at("/execution/callback") != nil {
		f.readings(f.full.at("/execution/callback"), "/execution/callback/outcome")
	}
	if f.full.at("/execution/reconcile") != nil {
		f.reconcile()
	}
	f.fillSteps()
}

func (f *filler) reconcile() {
	const at = "/execution/reconcile"
	for _, name := range []string{"from", "to", "cursor", "limit"} {
		f.put(at+"/input/"+name, stringNode(name))
	}
	f.put(at+"/items", stringNode("/items"))
	f.put(at+"/next", stringNode("/next_cursor"))
	f.put(at+"/page", number("200"))
	f.put(at+"/fields", &node{kind: objectKind})
	f.say(at+"/settle", stringNode("15m"))
	f.readings(f.full.at(at), at+"/outcome")
	if every := f.full.at(at + "/every"); every != nil {
		f.say(at+"/window", every)
	} else {
		f.note(at+"/every", "only when somebody asks")
	}
}

// readings assumes the usual words only where the author wrote none at all.
func (f *filler) readings(of *node, pointer string) {
	if outcome := of.get("outcome"); outcome != nil {
		if outcome.get("field") == nil {
			outcome.set("field", stringNode("/status"))
		}
		return
	}
	outcome := &node{kind: objectKind}
	outcome.set("field", stringNode("/status"))
	outcome.set("succeeded", words("SUCCEEDED"))
	outcome.set("failed", words("FAILED"))
	outcome.set("not_executed", words("NOT_EXECUTED"))
	of.set("outcome", outcome)
	f.note(pointer, "/status is SUCCEEDED, FAILED or NOT_EXECUTED")
}

func number(literal string) *node { return &node{kind: numberKind, text: literal} }

func words(list ...string) *node {
	n := &node{kind: listKind}
	for _, w := range list {
		n.items = append(n.items, stringNode(w))
	}
	return n
}
