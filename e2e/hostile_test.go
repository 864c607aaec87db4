package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"countersign/execution/api"
)

// Every real hostile text on one page, in a real browser: no script of theirs
// runs, no element of theirs is made, nothing is fetched, and the proposal stays
// as it is until a person decides.
func TestRealHostileTextsDoNothingInABrowser(t *testing.T) {
	t.Parallel()
	file, err := os.Open(filepath.Join("..", "..", "shared", "data", "dev", "adversarial.jsonl"))
	if os.IsNotExist(err) {
		t.Skip("the collection of real texts is not on this machine")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var texts, plain []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		texts, plain = append(texts, row.Text), append(plain, fmt.Sprint("plain words ", len(plain)))
	}
	c := orSkip(t, here.demo)
	tool := c.tool(t, "", "")
	p := c.as(t, "support", tool)
	look := func(texts []string) (api.Action, map[string]int) {
		payload, err := json.Marshal(map[string]any{"product_id": unique("SKU-"), "new_price": 105, "texts": texts})
		if err != nil {
			t.Fatal(err)
		}
		a := c.propose(t, api.Propose{Tool: tool, Payload: payload, Reason: texts[len(texts)-1]})
		p.open("/actions/" + a.ID + "?view=full").has(approveButton)
		return a, eval[map[string]int](p, `(() => { const n = {};
			for (const e of document.querySelectorAll("script, form, input, button, link, img, iframe, style, textarea, select, object, embed, base, meta, video, audio, marquee, math, frame"))
				n[e.localName] = (n[e.localName] || 0) + 1;
			for (const e of document.querySelectorAll("*")) for (const a of e.attributes)
				if (a.name.startsWith("on") || a.name === "style" || a.name === "srcdoc" || /^\s*(javascript|data|vbscript):/i.test(a.value)) n["attribute " + a.name] = (n["attribute " + a.name] || 0) + 1;
			for (const r of performance.getEntriesByType("resource")) if (new URL(r.name).origin !== location.origin) n["fetched " + r.name] = 1;
			return n })()`)
	}
	_, want := look(plain)
	a, got := look(texts)
	if !maps.Equal(got, want) {
		t.Errorf("the page has %v, with plain words %v", got, want)
	}
	p.checkHarmless() // what they ran would be heard: a dialog, an error, a blocked request
	c.stays(t, a)
	p.approve().want(http.StatusOK)
	c.reaches(t, a.ID, "confirmed")
}
