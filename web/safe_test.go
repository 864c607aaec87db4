package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
)

// rendered draws a component in a language, as it would be on a page.
func rendered(t *testing.T, l Lang, c templ.Component) string {
	t.Helper()
	ctx := WithLocale(context.Background(), Locale{Lang: l, Now: time.Date(2026, 11, 30, 14, 5, 8, 0, time.UTC)})
	var b bytes.Buffer
	if err := c.Render(ctx, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostileIn returns the first code point or byte that a page must not hold.
func hostileIn(page string) (string, bool) {
	for i, r := range page {
		_, n := utf8.DecodeRuneInString(page[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return "an invalid byte", true
		case r == '\n' || r == '\t':
		case r < 0x20, r >= 0x7F && r <= 0x9F:
			return unicodeName(r), true
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point):
			return unicodeName(r), true
		case r != ' ' && unicode.Is(unicode.Zs, r):
			return unicodeName(r), true
		case !unicode.IsGraphic(r):
			return unicodeName(r), true
		}
	}
	return "", false
}

func unicodeName(r rune) string { return segment{cp: r}.label() }

// elements counts the elements of a fragment by name and lists attributes'
// names, so that two renderings can be compared.
func elements(t *testing.T, page string) (names map[string]int, attributes map[string]bool) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	names, attributes = map[string]int{}, map[string]bool{}
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			names["!comment"]++
		}
		if n.Type != html.ElementNode {
			continue
		}
		names[n.Data]++
		for _, a := range n.Attr {
			attributes[a.Key] = true
		}
	}
	return names, attributes
}

// every component that shows outside text, filled with one text throughout.
func filledWith(s string) map[string]templ.Component {
	t, name := Outside(s), OutsideName(s)
	payload, err := json.Marshal(map[string]any{"a": s, "list": []string{s}, "deep": map[string]any{s: s}})
	if err != nil {
		payload = nil
	}
	effect := Effect{Sentence: t}
	bareEffect := Effect{Title: t, Parts: []Part{{t, name}}}
	target := &Target{t, name}
	f := Frame{Person: &Person{Name: t, Roles: []string{s}}, Flash: FlashDecided("act_1", effect, true, 0, Status{State: Applied, System: t})}
	rules := []Rule{{Role: s, Count: 1, When: t}}
	decisions := []Decision{{By: t, Role: s, Method: s, ReasonCode: s, Note: t}}
	refused := NewRefusal("already-decided", "approved", s, map[string]string{"by": s}).At("/"+s, s)
	fields := NewFields(FieldSource{Payload: payload, Now: map[string]json.RawMessage{"/a": []byte(`"x"`)}, Label: map[string]Text{"/a": t}, Left: Source{Name: t, At: time.Unix(0, 0)}})
	status := Status{State: Accepted, System: t}
	page := ActionPage{ID: "act_1", Status: status, Effect: bareEffect, Measure: &Measure{Value: "1", Unit: t}, Title: t, Tool: t, Target: target,
		Warnings: []Warning{WarningLookAlike(name), WarningRejected(Rejection{By: t, ReasonCode: s}), WarningChangedSince(t, t)}, Refused: refused, Fields: fields,
		RunSteps: []RunStep{{Name: t, State: "done", Earlier: "act_2"}, {Name: t, State: "unknown", Key: t}}, Who: Who{For: t, AskedBy: t, Reason: t, Decisions: decisions}, Why: Why{Rules: rules, You: StandWrongRole, Roles: []string{s}, Can: []Text{t, t, t}},
		Proof:  &Proof{Receipts: []Receipt{{Step: t, Ref: t}}, ReadBack: []ReadBack{{Field: t, Value: TextValue(t)}}, FailedCode: s},
		Story:  []Told{{Kind: s, By: t, For: t, Tool: t, Note: t, Reason: t, Ref: t, Version: t, Error: t, Why: s, Code: s, Key: s, More: []Text{t}}},
		Record: Record{PayloadHash: "sha256:00", Payload: Payload{Canonical: payload}, RuleSource: t, Curl: t}, Statement: &Statement{Level: "accepted"}}
	read := NewSnapshots([]Reading{{Source: t, Tool: s, Version: t, Body: payload}, {Source: t, Tool: s, Failed: t}}, FieldSource{Label: map[string]Text{"/a": t}})
	page.Answer, page.Snapshots, page.Success = &read[0], read, Success{Proves: "accepted", System: t, Meaning: t}
	page.Wait = &Wait{Tries: 2, Why: t}
	deciding := page
	deciding.Wait = &Wait{Tries: 2, Missed: &Missed{From: t}}
	deciding.Status = Status{State: Proposed}
	deciding.Effect = effect
	deciding.Checks = Checks{Permission: Permission{Named: true, Checked: true, Actor: t, Source: t}, VersionProposed: t, VersionSeen: t, Recent: 1, RecentLast: t, Rejections: []Rejection{{By: t, ReasonCode: s}}}
	deciding.Success = Success{Proves: "completed", System: t, Checks: []Text{t}, Meaning: t}
	deciding.Bar = Bar{Kind: BarDecide, Form: &DecideForm{}}
	cannot := deciding
	cannot.Bar = Bar{Kind: BarCannot}
	row := CaseRow{Item: CaseItem{"cas_1", 1, "sha256:00"}, Effect: bareEffect, Measure: &Measure{Value: "1", Unit: t}, Key: KeyLife{System: t}, Why: s, Holder: t, Second: t, By: t, Verdict: "happened", Status: status}
	row.Found = s
	found := Settlement{Found: s, Linked: &LinkedAction{ID: "act_2", Effect: effect, Status: status}, Verdict: s, By: t, Role: s, Kind: s, Ref: t, Note: t, Second: Seconder{By: t, Role: s, Note: t}}
	open := CasePage{ID: "cas_1", ActionID: "act_1", Status: status, Why: s, Effect: bareEffect, Measure: row.Measure, For: t, Title: t, Tool: t, Target: target, System: t, Holder: &Holder{Name: t}, Refused: refused,
		News: page.Story, Sent: []Sending{{By: t}}, RunSteps: []RunStep{{Name: t, State: "unknown", Key: t}}, Answers: []Answer{{Step: t, Ref: t, Claimed: "SUCCESS"}}, Asked: Asked{Possible: true}, Object: &Comparison{Source: t, Differ: []Mismatch{{Label: t, Raw: true, Expected: TextValue(t), Observed: TextValue(name), Forms: []string{s}}}, Same: []Normalised{{Label: t, Forms: []string{s}}}},
		Block: &TargetBlock{Scope: "target"}, Support: &SupportBlock{Key: s, Target: target, Measure: row.Measure, Ref: t}, Contradiction: &Contradiction{Side{Status: status, Source: t, Ref: t, Note: t}, Side{Source: t, Ref: t}, nil},
		Second: &SecondPerson{First: found, Can: []Text{t, t}}, Earlier: []Settlement{found}, Snapshots: NewSnapshots([]Reading{{Source: t, Version: t, Body: payload}, {Source: t, Failed: t}, {Source: t, Version: t, Body: []byte(`{"a":1}`)}}, FieldSource{Label: map[string]Text{"/a": t}}),
		Story: page.Story, Steps: Steps{HandOver: &HandOver{People: []Option{{"per_1", t}}}, Ask: &Step{WhyNot: "held"}, Resume: &Reversal{Curl: t}, Reverse: &Reversal{Curl: t, Linked: []LinkedAction{{ID: "act_2", Effect: effect, Status: status}}}, Settle: &SettleForm{Outcomes: []VerdictOutcome{{Verdict: "happened", Status: status, Refused: refused}}}}}
	client := ClientRow{ID: "cli_1", Name: t, Owner: t, Roles: []string{"reader"}, Tools: []Text{t}}
	person := PersonRow{ID: "per_1", Name: t, Username: t, Roles: []string{s}}
	admin := []Admin{{Kind: s, By: t, What: t}}
	return map[string]templ.Component{
		"U": U(t), "Block": Block(t), "Short": Short(t, 20), "Legend": Legend(name), "Content": Content(Payload{Canonical: payload}),
		"Fields": Fields(fields), "Action": ActionView(f, page), "Decide": ActionView(f, deciding), "Cannot": ActionView(f, cannot),
		"Queue":   ApprovalsPage(f, Queue{Filter: QueueFilter{Target: t, Tools: []string{s}}, Rows: []Row{{ID: "a", Effect: bareEffect, Actor: t, Client: t, Target: target, Looking: []Text{t, t}}, {ID: "b", Effect: effect}}}),
		"History": HistoryView(f, HistoryPage{Filter: HistoryFilter{Query: t, Approver: t, Tools: []string{s}}, Rows: []HistoryRow{{ID: "a", Effect: effect, Status: status, For: t, Decisions: decisions, Rules: rules}}}),
		"Stale":   StaleView(f, StalePage{ActionID: "a", Status: status, Title: t, Tool: t, Target: target, Fields: fields, RevisedBy: t, Rules: rules}),
		"Triage":  TriageView(f, TriagePage{Settles: true, Filter: TriageFilter{Query: t, Tools: []string{s}}, Groups: []CaseGroup{{System: t, Title: t, Why: s, Rows: []CaseRow{row, row}}}}), "Case": CaseView(f, open),
		"Bulk": BulkView(f, BulkPage{Do: "ask", Results: []BulkResult{{CaseID: "cas_1", Effect: effect, Refused: refused}}}), "Import": ImportView(f, ImportPage{Refused: refused, Preview: &ImportPreview{FileName: t, Rows: []ImportRow{{CaseID: "cas_1", Effect: effect, Key: t, Lines: []ImportLine{{Number: 1, Step: t, Says: t, Ref: t}}, Measure: row.Measure, Match: MatchImpossible, Refused: refused}}}}),
		"Tools": ToolsView(f, ToolsPage{Query: t, Tools: []ToolRow{{Name: "n", Title: t, Rules: rules}}}),
		"Tool": ToolView(f, ToolPage{Tool: ToolRow{Name: "n", Title: t, Rules: rules, Entries: []Text{t}}, Description: t, Target: t, Before: t, Permission: t, Checks: []Text{t}, Mask: []Text{t}, Curl: t,
			Assumed: []Assumption{{t, t}}, Schema: []SchemaField{{t, t, true, t, t}}, Versions: []ToolVersion{{By: t}}, Diff: &fields, Definition: Payload{Canonical: payload}}),
		"People": PeopleView(f, PeoplePage{People: []PersonRow{person}}), "Person": PersonView(f, PersonPage{Person: person, Clients: []ClientRow{client}, Events: admin, Secret: &Secret{Value: s}}),
		"Clients": ClientsView(f, ClientsPage{Clients: []ClientRow{client}}), "Client": ClientView(f, ClientPage{Client: client, Events: admin, Refused: refused}),
		"ClientNew": ClientNewView(f, ClientForm{Owners: []Option{{"per_1", t}}}),
		"Account":   AccountView(f, AccountPage{Name: t, Username: t, Sessions: []Session{{Agent: t, Address: t, Method: s}}}),
		"Link":      SignInLinkView(f, SignInLinkPage{Name: t, Username: t}), "Error": ErrorView(f, ErrorPage{Status: 409, Refusal: refused}),
	}
}

// benign is what the same components hold with a harmless text.
const benign = "harmless"

func checkSafe(t *testing.T, texts []string) {
	t.Helper()
	plain := map[string]map[string]int{}
	allowed := map[string]map[string]bool{}
	for name, c := range filledWith(benign) {
		plain[name], allowed[name] = elements(t, rendered(t, English, c))
	}
	// what the display itself may add
	ours := map[string]bool{"span": true, "bdi": true, "br": true, "a": true, "li": true, "tr": true, "td": true, "div": true, "th": true, "p": true, "dt": true, "dd": true, "dl": true, "code": true, "ul": true, "b": true, "svg": true, "use": true, "ol": true, "tbody": true}
	for _, s := range texts {
		for name, c := range filledWith(s) {
			page := rendered(t, English, c)
			if what, bad := hostileIn(page); bad {
				t.Errorf("%s with %q holds %s raw", name, s, what)
			}
			if !strings.ContainsAny(s, "<>&\"'`=") {
				continue // nothing in it could become markup
			}
			names, attributes := elements(t, page)
			for element := range names {
				if plain[name][element] == 0 && !ours[element] {
					t.Errorf("%s with %q has a <%s>", name, s, element)
				}
			}
			for _, strict := range []string{"script", "form", "input", "button", "link", "img", "iframe", "style", "!comment", "textarea", "select"} {
				if names[strict] != plain[name][strict] {
					t.Errorf("%s with %q: %d <%s>, want %d", name, s, names[strict], strict, plain[name][strict])
				}
			}
			for a := range attributes {
				if !allowed[name][a] && !strings.Contains("class title lang href colspan scope data-l aria-hidden width height id aria-invalid aria-describedby", a) {
					t.Errorf("%s with %q has the attribute %s", name, s, a)
				}
			}
		}
	}
}

func TestHostileTextsOfOurOwnStaySafeInEveryComponent(t *testing.T) {
	t.Parallel()
	checkSafe(t, []string{
		"\u202eabc\u202c", "a\u200bb\u200d\u2060", "\U000e0041\U000e007f", "x\ufe0f\U000e0100", "\x1b[31mred\x00", "\ue000\U000f0000", "\u0378 \ufdd0\U0010ffff",
		"\xff\xfe broken \xc3", "e\u0301\u0301\u0301\u0301\u0301", "\u0301lead", "</bdi></title></textarea><script>alert(1)</script>", `" onmouseover="x`, "<!-- ", "a\rb\r\nc\td\u2028e",
		"{{.by}} \x01 1 \x02", "\u00a0\u3000\u2003", "[link](javascript:x) https://e.example",
	})
}

// REPORTS 19 and 20: nothing hides, nothing acts, whatever real texts say.
func TestReport19And20_RealHostileTextsStaySafeInEveryComponent(t *testing.T) {
	t.Parallel()
	file, err := os.Open(filepath.Join("..", "..", "shared", "data", "dev", "adversarial.jsonl"))
	if os.IsNotExist(err) {
		t.Skip("the collection of real texts is not on this machine")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var texts []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, row.Text)
	}
	if len(texts) < 400 {
		t.Fatalf("only %d texts", len(texts))
	}
	checkSafe(t, texts)
}

// A sentence of ours cannot be broken by what stands in it.
func TestTextWithOurOwnMarksStaysText(t *testing.T) {
	page := rendered(t, English, Say(msg("queue.for", "actor", Outside("\x010\x02 and {{.actor}}"))))
	if !strings.Contains(page, "U+0001") || strings.Count(page, "for ") != 1 {
		t.Error(page)
	}
}
