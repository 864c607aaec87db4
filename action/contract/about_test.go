package contract

import (
	"strings"
	"testing"

	"countersign/action"
)

// What an answer is about is told by what names it, where the answer has it.
func TestAnAnswerAboutSomethingElse(t *testing.T) {
	parse := func(target, required string) *Contract {
		t.Helper()
		c, err := Parse([]byte("name: shop.read\nmode: read\ninput_schema: { type: object, required: [" + required +
			"], properties: { product_id: {}, list: {}, execution_key: {}, actor_id: {}, note: {} } }\n" + target))
		if err != nil {
			t.Fatal(action.AsRefusal(err).Errors)
		}
		return c
	}
	const input = `{"product_id":"p1","list":"retail","execution_key":"k1","actor_id":"u1","note":"mine"}`
	for _, c := range []struct {
		target, required, answer string
		other                    bool
	}{
		{"target: { type: product, id: /product_id }", "", `{"product_id":"p1","price":1}`, false},
		{"target: { type: product, id: /product_id }", "", `{"product_id":"p2","price":1}`, true},
		{"target: { type: product, id: /product_id }", "", `{"product_id":"P1"}`, true},
		{"target: { type: product, id: /product_id }", "", `{"price":1}`, false},
		{"target: { type: product, id: /product_id }", "", `{"product_id":{"id":"p2"}}`, false},
		{"target: { type: product, id: /product_id }", "", `{"product_id":["p2"]}`, false},
		{"target: { type: product, id: /product_id }", "", `{"product_id":null}`, false},
		{"target: { type: product, id: /product_id }", "", `{"product_id":""}`, true},
		{"target: { type: product, id: /product_id }", "", `{"product_id":"p1\u0000"}`, true},
		{"target: { type: product, id: /product_id }", "", `{"product_id":false}`, true},
		{"target: { type: product, id: /product_id }", "", `{"product_id":12345678901.25}`, true},
		{"target: { type: product, id: /product_id }", "", `{"product_id":88888888888888888888}`, true},
		{"target: { type: product, id: /product_id }", "", `{"execution_key":"k2"}`, true},
		{"target: { type: product, id: /product_id }", "", `{"note":"yours","actor_id":"u2"}`, false},
		{"target: { type: product, id: /product_id }", "list", `{"product_id":"p1","list":"trade"}`, true},
		{"", "product_id", `{"product_id":"p2"}`, true},
		{"", "product_id, actor_id", `{"product_id":"p1","actor_id":"u2"}`, false},
		{"", "", `{"product_id":"p2"}`, false},
		{"target: { type: product, id: /product_id, answer: /data/id }", "", `{"product_id":"x","data":{"id":"p1"}}`, false},
		{"target: { type: product, id: /product_id, answer: /data/id }", "", `{"product_id":"p1","data":{"id":"p2"}}`, true},
		{"target: { type: product, id: /product_id, answer: /data/id }", "", `{"product_id":"p1"}`, true},
		{"target: { type: product, id: [/list, /product_id], answer: [/list, /id] }", "", `{"list":"retail","id":"p1"}`, false},
		{"target: { type: product, id: [/list, /product_id], answer: [/list, /id] }", "", `{"list":"trade","id":"p1"}`, true},
	} {
		if got := parse(c.target, c.required).AboutOther([]byte(input), []byte(c.answer)); got != c.other {
			t.Errorf("%q, %q: %s is about something else: %v", c.target, c.required, c.answer, got)
		}
	}
	forms := parse("", "list, note, execution_key")
	for answer, other := range map[string]bool{`{"list":"RETAIL","note":7}`: false, `{"note":"2026-12-01T00:00:00Z"}`: false, `{"note":"7.00"}`: false,
		`{"note":"seven"}`: true, `{"execution_key":"K1"}`: true, `{"execution_key":"8"}`: true} {
		if got := forms.AboutOther([]byte(`{"list":"retail","note":"2026-12-01","execution_key":"7"}`), []byte(answer)); got != other {
			t.Errorf("%s, in another form, is about something else: %v", answer, got)
		}
	}
	numbers := parse("target: { type: product, id: /product_id }", "")
	if numbers.AboutOther([]byte(`{"product_id":"10086"}`), []byte(`{"product_id":10086}`)) || !numbers.AboutOther([]byte(`{"product_id":10086}`), []byte(`{"product_id":"10087"}`)) {
		t.Error("a number is another id than its text")
	}
	for source, why := range map[string]string{
		"mode: write\ntarget: { type: product, id: /a, answer: /id }":        "tools that read",
		"mode: read\ntarget: { type: product, id: [/a, /b], answer: /id }":   "names 1 places",
		"mode: read\ntarget: { type: product, id: /a, answer: [/id, /b] }":   "names 2 places",
		"mode: read\ntarget: { type: product, id: /a, answer: \"nowhere\" }": "",
	} {
		_, err := Parse([]byte("name: shop.read\ninput_schema: { type: object }\n" + source))
		if r := action.AsRefusal(err); err == nil || !strings.HasPrefix(r.Errors[0].Pointer, "/target/answer") || !strings.Contains(r.Errors[0].Detail, why) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
