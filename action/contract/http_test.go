package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/action"

	"pgregory.net/rapid"
)

func TestRequest(t *testing.T) {
	c := full(t)
	payload := []byte(`{"name":"<é>","new_price":105.5,"product_id":"SKU 4411/a?b#c%"}`)
	r, err := c.Request("https://shop.example/api/", payload, "exk_1", "7")
	if err != nil {
		t.Fatal(err)
	}
	if r.Method != "POST" || r.URL != "https://shop.example/api/products/SKU%204411%2Fa%3Fb%23c%25/price" || string(r.Body) != string(payload) {
		t.Errorf("got %s %s %s", r.Method, r.URL, r.Body)
	}
	for name, want := range map[string]string{"Idempotency-Key": "exk_1", "If-Match": `"7"`, "X-Source": "countersign", "Content-Type": "application/json"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRequestForms(t *testing.T) {
	const input = `"input_schema": {"type": "object"}`
	tests := []struct{ name, http, payload, method, url, body string }{
		{"read", `{"method": "GET", "path": "/orders/{id}"}`, `{"a":["x","y z"],"id":12,"n":null,"q":"a&b","t":true}`, "GET", "http://h/orders/12?a=x&a=y+z&q=a%26b&t=true", ""},
		{"nothing that was approved is left out", `{"method": "DELETE", "path": "/orders/{id}"}`, `{"id":"o1","reason":"dup"}`, "DELETE", "http://h/orders/o1?reason=dup", ""},
		{"some fields", `{"method": "PUT", "path": "/o", "body": ["b", "a"]}`, `{"a":1,"b":{"z":1},"c":"q"}`, "PUT", "http://h/o?c=q", `{"a":1,"b":{"z":1}}`},
		{"a part", `{"method": "POST", "path": "/o", "body": "/data"}`, `{"data":[{"b":1}]}`, "POST", "http://h/o", `[{"b":1}]`},
		{"key in the body", `{"method": "POST", "path": "/o", "idempotency": "/k"}`, `{"a":1,"z":2}`, "POST", "http://h/o", `{"a":1,"k":"exk","z":2}`},
		{"pointer in the path", `{"method": "POST", "path": "/o/{/order/id}/x"}`, `{"order":{"id":"7"}}`, "POST", "http://h/o/7/x", `{"order":{"id":"7"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := parse(t, `{"name": "a", "mode": "`+modeOf(test.http)+`", `+input+`, "http": `+test.http+`}`)
			r, err := c.Request("http://h", []byte(test.payload), "exk", "")
			if err != nil {
				t.Fatalf("%v %+v", err, action.AsRefusal(err).Errors)
			}
			if r.Method != test.method || r.URL != test.url || string(r.Body) != test.body || r.Header.Get("If-Match") != "" {
				t.Errorf("got %+v %s", r, r.Body)
			}
		})
	}
}

func modeOf(http string) string {
	if strings.Contains(http, "GET") {
		return "read"
	}
	return "write"
}

func TestRequestRefuses(t *testing.T) {
	post := func(rest string) string { return `"http": {"method": "POST", "path": "/o/{id}"` + rest + `}` }
	tests := []struct{ name, members, payload, version, pointer string }{
		{"empty value", post(""), `{"id":""}`, "", "/id"},
		{"dots", post(""), `{"id":".."}`, "", "/id"},
		{"a dot", post(""), `{"id":"."}`, "", "/id"},
		{"missing value", post(""), `{}`, "", "/id"},
		{"null", post(""), `{"id":null}`, "", "/id"},
		{"object in the path", post(""), `{"id":{}}`, "", "/id"},
		{"object in the query", post(`, "body": "none"`), `{"id":"1","o":{}}`, "", "/o"},
		{"body that is not there", post(`, "body": "/data"`), `{"id":"1"}`, "", "/data"},
		{"key given by the payload", post(`, "idempotency": "/k"`), `{"id":"1","k":"mine"}`, "", "/k"},
		{"version that breaks the header", post(""), `{"id":"1"}`, "a\r\nX: y", ""},
		{"version with a quote", post(""), `{"id":"1"}`, `a"b`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := with(t, test.members).Request("http://h", []byte(test.payload), "exk", test.version)
			if r := action.AsRefusal(err); r.Code != action.InvalidPayload || len(r.Errors) != 1 || r.Errors[0].Pointer != test.pointer {
				t.Errorf("got %v %+v", err, r.Errors)
			}
		})
	}
	c := with(t, post(""))
	for _, base := range []string{"", "h", "ftp://h", "http://", "http://h?x=1", "http://h#x"} {
		if _, err := c.Request(base, []byte(`{"id":"1"}`), "exk", ""); err == nil {
			t.Errorf("base %q was taken", base)
		}
	}
	if _, err := with(t, `"mode": "write"`).Request("http://h", []byte(`{}`), "exk", ""); !action.IsCode(err, action.ToolUnavailable) {
		t.Errorf("a contract without http: %v", err)
	}
}

func TestEntityTag(t *testing.T) {
	for version, want := range map[string]string{"7": `"7"`, `"7"`: `"7"`, `W/"7"`: `W/"7"`, "*": `"*"`, "W/7": `"W/7"`, "": `""`, `"`: "", "a b": "", "a\x7f": ""} {
		got, ok := entityTag(version)
		if got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", version, got, ok)
		}
	}
}

// No value can change which path is called.
func TestPathKeepsItsShape(t *testing.T) {
	c := with(t, `"http": {"method": "POST", "path": "/a/{id}/b"}`)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("./%?#\\;:@ 2eEfF&=+\x00\n")))).Draw(t, "id")
		payload := append(appendString([]byte(`{"id":`), id), '}')
		r, err := c.Request("http://h/base", payload, "exk", "")
		if err != nil {
			if id != "" && id != "." && id != ".." {
				t.Fatalf("%q was refused: %v", id, err)
			}
			return
		}
		request, err := http.NewRequest(r.Method, r.URL, nil)
		if err != nil {
			t.Fatalf("%q: %v", r.URL, err)
		}
		segments := strings.Split(request.URL.EscapedPath(), "/")
		if len(segments) != 5 || segments[1] != "base" || segments[2] != "a" || segments[4] != "b" || request.URL.RawQuery != "" || request.URL.Fragment != "" || request.URL.Host != "h" {
			t.Fatalf("%q became %s", id, r.URL)
		}
		if back, err := url.PathUnescape(segments[3]); err != nil || back != id {
			t.Fatalf("%q reads back as %q, %v", id, back, err)
		}
	})
}

func TestHTTPPartIsChecked(t *testing.T) {
	tests := []struct{ http, pointer string }{
		{`{"method": "POST", "path": "orders"}`, "/http/path"},
		{`{"method": "POST", "path": "/a/../b"}`, "/http/path"},
		{`{"method": "POST", "path": "//host/b"}`, "/http/path"},
		{`{"method": "POST", "path": "/a?b=1"}`, "/http/path"},
		{`{"method": "POST", "path": "/a/{id"}`, "/http/path"},
		{`{"method": "POST", "path": "/a/%2e%2e/b"}`, "/http/path"},
		{`{"method": "POST", "path": "/a/{}"}`, "/http/path"},
		{`{"method": "TRACE", "path": "/a"}`, "/http/method"},
		{`{"method": "GET", "path": "/a"}`, "/http/method"},
		{`{"method": "POST", "path": "/a", "headers": {"Authorization": "x"}}`, "/http/headers/Authorization"},
		{`{"method": "POST", "path": "/a", "headers": {"if-match": "x"}}`, "/http/headers/if-match"},
		{`{"method": "POST", "path": "/a", "headers": {"X-A": "x\r\ny"}}`, "/http/headers/X-A"},
		{`{"method": "POST", "path": "/a", "headers": {"X A": "x"}}`, "/http/headers/X A"},
		{`{"method": "POST", "path": "/a", "body": "some"}`, "/http/body"},
		{`{"method": "DELETE", "path": "/a", "idempotency": "/k"}`, "/http/idempotency"},
		{`{"method": "POST", "path": "/a", "idempotency": "cookie"}`, "/http/idempotency"},
	}
	for _, test := range tests {
		_, err := Parse([]byte(`{"name": "a", "mode": "write", "input_schema": {}, "http": ` + test.http + `}`))
		if r := action.AsRefusal(err); err == nil || len(r.Errors) != 1 || r.Errors[0].Pointer != test.pointer {
			t.Errorf("%s: %v %+v", test.http, err, r)
		}
	}
}
