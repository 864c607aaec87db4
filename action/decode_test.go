package action

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

type decodeParty struct {
	ID   string  `json:"id"`
	Name *string `json:"name"`
}

type decodeCommon struct {
	Reason string `json:"reason"`
}

type decodeBody struct {
	decodeCommon
	Tool     string          `json:"tool"`
	Actor    *decodeParty    `json:"actor"`
	Payload  json.RawMessage `json:"payload"`
	Draft    bool            `json:"draft"`
	Revision int32           `json:"revision"`
	Ratio    *float64        `json:"ratio"`
	At       *time.Time      `json:"at"`
	Parties  []decodeParty   `json:"parties"`
	Labels   map[string]int  `json:"labels"`
	Data     []byte          `json:"data"`
	Free     any             `json:"free"`
	Plain    string
	Hidden   string `json:"-"`
}

func TestDecodeStrictAccepts(t *testing.T) {
	raw := `{"tool":"t","actor":{"id":"a","name":"\u00e9"},"payload": {"n": 12345678901234567890, "x":[1.0]} ,"draft":true,
		"revision":-7,"ratio":1.50,"at":"2026-01-31T09:30:00+01:00","parties":[{"id":"p"}],"labels":{"a":1,"A":2},
		"data":"aGk=","free":{"n":[1,null]},"Plain":"p","reason":"because"}`
	var body decodeBody
	if err := DecodeStrict([]byte(raw), &body); err != nil {
		t.Fatal(err)
	}
	if body.Tool != "t" || body.Actor.ID != "a" || *body.Actor.Name != "é" || !body.Draft || body.Revision != -7 ||
		*body.Ratio != 1.5 || body.At.UTC().Hour() != 8 || body.Parties[0].ID != "p" || body.Labels["A"] != 2 ||
		string(body.Data) != "hi" || body.Free == nil || body.Plain != "p" || body.Reason != "because" {
		t.Errorf("bound wrongly: %+v", body)
	}
	if want := `{"n": 12345678901234567890, "x":[1.0]}`; string(body.Payload) != want {
		t.Errorf("the payload's bytes changed: %s, want %s", body.Payload, want)
	}

	body = decodeBody{Tool: "kept"}
	if err := DecodeStrict([]byte(`{"tool":null,"actor":null,"payload":null,"draft":null,"parties":null,"at":null}`), &body); err != nil {
		t.Fatal(err)
	}
	if body.Tool != "kept" || body.Actor != nil || string(body.Payload) != "null" || body.At != nil {
		t.Errorf("null is not absence: %+v", body)
	}
}

func TestDecodeStrictRefuses(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		code      Code
		reason    string
		pointers  []string
	}{
		{"empty", ``, Malformed, "syntax", []string{""}},
		{"cut short", `{"tool":"t`, Malformed, "syntax", []string{"/tool"}},
		{"array", `[]`, InvalidArgument, "wrong-type", []string{""}},
		{"null", `null`, InvalidArgument, "wrong-type", []string{""}},
		{"another case", `{"Payload":{}}`, InvalidArgument, "unknown-member", []string{"/Payload"}},
		{"another case of a name without a tag", `{"plain":""}`, InvalidArgument, "unknown-member", []string{"/plain"}},
		{"nested case", `{"actor":{"ID":"a"}}`, InvalidArgument, "unknown-member", []string{"/actor/ID"}},
		{"nested in an array", `{"parties":[{"id":"a"},{"iD":"a"}]}`, InvalidArgument, "unknown-member", []string{"/parties/1/iD"}},
		{"hidden", `{"Hidden":"x"}`, InvalidArgument, "unknown-member", []string{"/Hidden"}},
		{"duplicate", `{"tool":"a","tool":"b"}`, InvalidArgument, "duplicate-key", []string{"/tool"}},
		{"duplicate in a map", `{"labels":{"a":1,"\u0061":2}}`, InvalidArgument, "duplicate-key", []string{"/labels/a"}},
		{"duplicate payload", `{"payload":{},"payload":{}}`, InvalidPayload, "duplicate-key", []string{"/payload"}},
		{"duplicate inside the payload", `{"payload":{"a":[{"b":1,"b":1}]}}`, InvalidPayload, "duplicate-key", []string{"/payload/a/0/b"}},
		{"payload and more", `{"payload":{"b":1,"b":1},"payloads":1}`, InvalidArgument, "duplicate-key", []string{"/payload/b", "/payloads"}},
		{"bad text inside the payload", "{\"payload\":{\"a\":\"\xff\"}}", InvalidPayload, "bad-utf8", []string{"/payload/a"}},
		{"types", `{"tool":1,"actor":"a","draft":"yes","parties":{},"labels":[],"at":"today","data":"*"}`, InvalidArgument, "wrong-type",
			[]string{"/tool", "/actor", "/draft", "/parties", "/labels", "/at", "/data"}},
		{"whole numbers", `{"revision":1.0,"labels":{"a":1e2,"b":"1"}}`, InvalidArgument, "wrong-type", []string{"/revision", "/labels/a", "/labels/b"}},
		{"out of range", `{"revision":2147483648}`, InvalidArgument, "wrong-type", []string{"/revision"}},
		{"changed double", `{"ratio":9007199254740993,"free":[1e400]}`, InvalidArgument, "changed-number", []string{"/ratio", "/free/0"}},
		{"null in an array", `{"parties":[null]}`, InvalidArgument, "wrong-type", []string{"/parties/0"}},
		{"too deep", `{"payload":` + strings.Repeat("[", maxBodyDepth), InvalidPayload, "too-deep", []string{"/payload" + strings.Repeat("/0", maxBodyDepth-1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body decodeBody
			err := DecodeStrict([]byte(c.raw), &body)
			wantRefusal(t, err, c.code, c.reason, c.pointers...)
			if body.Tool != "" || body.Payload != nil {
				t.Errorf("a refused body was bound: %+v", body)
			}
		})
	}
}

func TestUnknownMemberNamesTheWayOut(t *testing.T) {
	for key, want := range map[string]string{
		"PAYLOAD": `did you mean "payload"?`, "paylaod": `did you mean "payload"?`, "revison": `did you mean "revision"?`,
		"xyz": `known here are "reason", "tool"`, strings.Repeat("tool", 50_000): "known here are",
	} {
		err := DecodeStrict([]byte(`{"`+key+`":1}`), &decodeBody{})
		if r := AsRefusal(err); r.Code != InvalidArgument || !strings.Contains(r.Errors[0].Detail, want) {
			t.Errorf("%.20s: %+v, want %s", key, r.Errors, want)
		}
	}
}

func TestDecodeStrictSize(t *testing.T) {
	raw := []byte(`{"tool":"` + strings.Repeat("x", 90) + `"}`)
	var body decodeBody
	if err := DecodeStrict(raw, &body, MaxBytes(len(raw))); err != nil {
		t.Error(err)
	}
	wantRefusal(t, DecodeStrict(raw, &body, MaxBytes(len(raw)-1)), TooLarge, "", "")
	wantRefusal(t, DecodeStrict(make([]byte, MaxBodyBytes+1), &body), TooLarge, "", "")
}

func TestDecodeStrictNeedsAStruct(t *testing.T) {
	for _, into := range []any{nil, decodeBody{}, new(string), map[string]any{}} {
		if err := DecodeStrict([]byte(`{}`), into); err == nil || AsRefusal(err).Code != Internal {
			t.Errorf("%T: %v, want an internal error", into, err)
		}
	}
}

// A body that passes the check is bound without a further error, and one that
// encoding/json cannot read never passes.
func FuzzDecodeStrict(f *testing.F) {
	for _, seed := range []string{
		`{"tool":"t","actor":{"id":"a"},"payload":{"a":[1.0]},"revision":1,"ratio":1e2,"at":"2026-01-31T09:30:00Z"}`,
		`{"parties":[{"id":"p","name":null}],"labels":{"a":1},"data":"aGk=","free":[{}],"Plain":"","reason":"r"}`,
		`{"Tool":1,"tool":2,"tool":null}`, `{"revision":1e0}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var body decodeBody
		err := DecodeStrict(raw, &body)
		if err != nil && AsRefusal(err).Code == Internal {
			t.Fatalf("not a refusal: %v", err)
		}
		if err == nil && json.Unmarshal(raw, &decodeBody{}) != nil {
			t.Fatalf("accepted what encoding/json refuses: %q", raw)
		}
	})
}
