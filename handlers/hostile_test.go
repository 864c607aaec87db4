package handlers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"

	xhtml "golang.org/x/net/html"
)

// A tool whose every text comes from outside, and one that reads.
const (
	hostileWrite = `name: desk.write
mode: write
input_schema: { type: object, properties: { body: { type: string }, more: { type: array } } }
approval: { ttl: 1h, before: desk.read, rules: [ { when: "true", role: support, approvals: 1 } ] }
`
	hostileRead = `name: desk.read
mode: read
input_schema: { type: object }
display: { allow_output: [/remarks] }
`
)

// hostileTexts are real texts that try to fool who reads them, or a browser.
func hostileTexts(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(shared(t, "dev"), "adversarial.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var texts []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, row.Text)
	}
	if err := lines.Err(); err != nil || len(texts) < 400 {
		t.Fatalf("%d texts: %v", len(texts), err)
	}
	return texts
}

// rawIn is the first code point of a page that must not stand there as it is.
func rawIn(page []byte) string {
	for len(page) > 0 {
		r, n := utf8.DecodeRune(page)
		page = page[n:]
		switch {
		case r == utf8.RuneError && n == 1:
			return "an invalid byte"
		case r == '\n' || r == '\t' || r == ' ':
		case !unicode.IsGraphic(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector,
			unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point):
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

// acting counts what acts on a page: elements that a text could want to be,
// and attributes that run something or lead elsewhere.
func acting(t *testing.T, page []byte) map[string]int {
	t.Helper()
	root, err := xhtml.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	const elements = " script form input button link img image iframe style textarea select object embed base meta video audio marquee math frame "
	counts := map[string]int{}
	for n := range root.Descendants() {
		switch {
		case n.Type == xhtml.CommentNode:
			counts["comment"]++
		case n.Type == xhtml.ElementNode && strings.Contains(elements, " "+n.Data+" "):
			counts[n.Data]++
		}
		for _, a := range n.Attr {
			ours := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "?")
			leads := (a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction") && !ours
			if leads || strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
				counts[a.Key]++
			}
		}
	}
	return counts
}

// harmless checks a page against what acts on one of the same kind that holds
// plain words.
func (a answer) harmless(name string, plain map[string]int) {
	a.t.Helper()
	if what := rawIn(a.body); a.status != http.StatusOK || what != "" {
		a.t.Errorf("%s answers %d and holds %s", name, a.status, what)
	}
	if t, ok := a.t.(*testing.T); ok {
		for what, n := range acting(t, a.body) {
			if n > plain[what] {
				t.Errorf("%s: %d × %s, want %d", name, n, what, plain[what])
			}
		}
	}
}

// written proposes something with texts in it, for an actor and on a target.
func (e *env) written(key, actor, target string, texts []string) answer {
	return e.post(people.RoleProposer, "/v1/actions", map[string]any{"tool": "desk.write", "actor": map[string]any{"id": "u-" + key, "name": actor},
		"target": map[string]any{"type": "note", "id": target}, "payload": map[string]any{"body": texts[0], "more": texts}, "reason": texts[0]}, "Idempotency-Key", key)
}

// through takes texts through the life of one action, as body, tool output and
// note, and returns the pages on which people see them.
func (e *env) through(mia *browser, key string, texts []string) (waiting, rejected answer) {
	e.T.Helper()
	made := into[api.Action](e.written(key, "Anna Schmidt", "note "+key, texts).want(201))
	remarks, err := json.Marshal(map[string]any{"remarks": texts, "internal": "cost price 3.10"})
	if err != nil {
		e.T.Fatal(err)
	}
	e.post(people.RoleExecutor, "/v1/actions/"+made.ID+"/observations", api.Observation{ObservationID: "obs-" + key, Tool: "desk.read",
		Snapshot: remarks, ObservedAt: made.CreatedAt}).want(201)
	waiting = mia.open("/actions/" + made.ID)
	if now := e.Read(made.ID); now.State != action.Proposed || len(now.Decisions) != 0 || now.Version != 2 {
		e.T.Errorf("%s: texts made it %s at version %d", key, now.State, now.Version)
	}
	mia.send("/actions/"+made.ID+"/decisions", formOf("op", waiting.op(), "decision", "reject", "proposal_hash", made.ProposalHash,
		"revision", "1", "reason_code", "suspicious", "reason", strings.Join(texts, "\n"))).want(http.StatusSeeOther)
	if now := e.Read(made.ID); now.State != action.Rejected || len(now.Decisions) != 1 {
		e.T.Errorf("%s: rejected with texts, it is %s", key, now.State)
	}
	return waiting, mia.open("/actions/" + made.ID)
}

// Every real hostile text as body, note, tool output, actor name and target id,
// through the API and onto the pages: nothing of it stands there raw, nothing of
// it becomes an element, and nothing changes because of it.
func TestHostileTextsInEveryPlace(t *testing.T) {
	t.Parallel()
	texts := hostileTexts(t)
	e := newEnv(t)
	e.Tool(hostileRead)
	e.Tool(hostileWrite)
	mia := e.as(e.Mia)

	waiting, rejected := e.through(mia, "plain", []string{"plain words", "more of them"})
	plainWaiting, plainRejected := acting(t, waiting.body), acting(t, rejected.body)
	waiting.says("plain words").lacks("cost price")
	rejected.says("plain words").lacks("cost price")
	var batch []string
	size := 0
	for i, text := range texts {
		if batch, size = append(batch, text), size+len(text); size < 1000 && i < len(texts)-1 {
			continue
		}
		key := fmt.Sprintf("texts-%d", i)
		waiting, rejected = e.through(mia, key, batch)
		waiting.harmless(key, plainWaiting)
		rejected.harmless(key, plainRejected)
		waiting.lacks("cost price")
		batch, size = nil, 0
	}
	e.listed(mia, texts)
}

// actionRows are the actions that a list leads to.
var actionRows = regexp.MustCompile(`href="/actions/(act_[0-9A-Z]+)"`)

// fitting is what of a text can be a name: no control characters, 256 bytes.
func fitting(text string) string {
	kept := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	for len(kept) > 256 {
		_, n := utf8.DecodeLastRuneInString(kept)
		kept = kept[:len(kept)-n]
	}
	return kept
}

// listed proposes every text as an actor's name and a target's id, as far as it
// can be one, and looks at the lists that show them.
func (e *env) listed(mia *browser, texts []string) {
	e.T.Helper()
	plain := map[string]map[string]int{}
	for _, path := range []string{"/approvals", "/history"} {
		e.written("list "+path, "Anna", "note 1"+path, []string{"plain"}).want(201)
		plain[path] = acting(e.T.(*testing.T), mia.open(path).body)
	}
	ids := map[string]bool{}
	for i, text := range texts {
		key := fmt.Sprintf("name-%d", i)
		a := e.written(key, text, text, []string{text})
		if fits := fitting(text); a.status != http.StatusCreated && fits != text {
			a.refused(action.InvalidArgument)
			if fits == "" {
				continue // nothing but control characters
			}
			a = e.written(key, fits, fits, []string{text})
		}
		ids[into[api.Action](a.want(201)).ID] = true
	}
	if len(ids) < len(texts)-3 {
		e.T.Errorf("%d of %d texts could be names", len(ids), len(texts))
	}
	for path, before := range plain {
		seen := map[string]bool{}
		for at := path; at != ""; {
			page := mia.open(at)
			page.harmless(at, before)
			for _, m := range actionRows.FindAllSubmatch(page.body, -1) {
				seen[string(m[1])] = true
			}
			at = nextPage(page)
		}
		for id := range ids {
			if !seen[id] {
				e.T.Fatalf("%s does not list %s", path, id)
			}
		}
	}
	for id := range ids {
		if a := e.Read(id); a.State != action.Proposed || a.Version != 1 {
			e.T.Errorf("a name made %s %s", id, a.State)
		}
	}
}
