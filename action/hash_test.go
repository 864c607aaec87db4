package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
)

func ptr[T any](v T) *T { return &v }

// The sums below were made with Python's hashlib from the texts below.
func TestPayloadHashGolden(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:                      "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		` {"b":"\u00e9","a":1e0}`: "sha256:09ad9fd2fb648cb2f62141215828ea00a62c299db05d20aa9ade2f527a301cc6",
	} {
		canonical, err := Canonical([]byte(raw))
		if got := PayloadHash(canonical); err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", raw, got, err, want)
		}
	}
}

const emptyHash = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

func fullBinding() Binding {
	return Binding{
		ActionID: "act_01JQ8ZK3V7M4N5P6Q7R8S9T0AB", Revision: 3, Tool: "catalog.set_price", ToolVersion: 12,
		Actor: "merchant-42", TargetType: ptr("product"), TargetID: ptr("p-100"), ObjectVersion: ptr("17"),
		PayloadHash: emptyHash, ExecutionKey: "exk_01JQ8ZK3V7M4N5P6Q7R8S9T0AC",
		ExpiresAt: ptr(time.Date(2026, 3, 29, 3, 59, 59, 987654321, time.FixedZone("CEST", 7200))),
	}
}

func TestBindingGolden(t *testing.T) {
	draft := Binding{
		ActionID: "act_01JQ8ZK3V7M4N5P6Q7R8S9T0AB", Revision: 1, Tool: "mail.send", ToolVersion: 1,
		Actor: "Zoë \"<&>\"\n\u2028\x01\\😂\x7f", PayloadHash: emptyHash, ExecutionKey: "exk_01JQ8ZK3V7M4N5P6Q7R8S9T0AC",
	}
	for _, c := range []struct {
		binding    Binding
		text, hash string
	}{
		{fullBinding(), `{"action_id":"act_01JQ8ZK3V7M4N5P6Q7R8S9T0AB","actor":"merchant-42","execution_key":"exk_01JQ8ZK3V7M4N5P6Q7R8S9T0AC","expires_at":"2026-03-29T01:59:59Z","object_version":"17","payload_hash":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","revision":3,"target_id":"p-100","target_type":"product","tool":"catalog.set_price","tool_version":12,"v":1}`,
			"sha256:a93859d8dc3b9a4350f3d7ba630af884256f727d9e7b1225b4c854bea8b0bff4"},
		{draft, `{"action_id":"act_01JQ8ZK3V7M4N5P6Q7R8S9T0AB","actor":"Zoë \"<&>\"\n` + "\u2028" + `\u0001\\😂` + "\x7f" + `","execution_key":"exk_01JQ8ZK3V7M4N5P6Q7R8S9T0AC","expires_at":null,"object_version":null,"payload_hash":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","revision":1,"target_id":null,"target_type":null,"tool":"mail.send","tool_version":1,"v":1}`,
			"sha256:c4aab2d7afbea025f1430fbc3dd4227760ae616d2e8e6e8ce282f2b8f7fa3bd4"},
	} {
		if got := string(c.binding.Canonical()); got != c.text {
			t.Errorf("got  %s\nwant %s", got, c.text)
		}
		if got := c.binding.Hash(); got != c.hash {
			t.Errorf("got %s, want %s", got, c.hash)
		}
	}
}

// The text is what a general RFC 8785 library makes of the documented object,
// whatever characters its strings hold.
func TestBindingIsJCS(t *testing.T) {
	for c := range rune(0x300) {
		b := fullBinding()
		b.Actor = fmt.Sprintf("a%cb", c)
		b.TargetID = ptr(strings.Repeat(string(c), 3))
		object, err := json.Marshal(map[string]any{
			"v": 1, "action_id": b.ActionID, "revision": b.Revision, "tool": b.Tool, "tool_version": b.ToolVersion,
			"actor": b.Actor, "target_type": b.TargetType, "target_id": b.TargetID, "object_version": b.ObjectVersion,
			"payload_hash": b.PayloadHash, "execution_key": b.ExecutionKey, "expires_at": "2026-03-29T01:59:59Z",
		})
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(object)
		if got := b.Canonical(); err != nil || string(got) != string(want) {
			t.Errorf("U+%04X: got %s (%v)\nwant %s", c, got, err, want)
		}
	}
}

func TestEveryFieldChangesTheHash(t *testing.T) {
	seen := map[string]string{fullBinding().Hash(): "nothing"}
	for name, change := range map[string]func(*Binding){
		"action":             func(b *Binding) { b.ActionID += "x" },
		"revision":           func(b *Binding) { b.Revision++ },
		"tool":               func(b *Binding) { b.Tool += "x" },
		"tool version":       func(b *Binding) { b.ToolVersion++ },
		"actor":              func(b *Binding) { b.Actor += "x" },
		"actor, bad bytes":   func(b *Binding) { b.Actor += "\xff" },
		"actor, other ones":  func(b *Binding) { b.Actor += "\xfe" },
		"target type":        func(b *Binding) { *b.TargetType += "x" },
		"target id":          func(b *Binding) { *b.TargetID += "x" },
		"no target":          func(b *Binding) { b.TargetType, b.TargetID = nil, nil },
		"object version":     func(b *Binding) { *b.ObjectVersion += "x" },
		"no object version":  func(b *Binding) { b.ObjectVersion = nil },
		"empty version":      func(b *Binding) { *b.ObjectVersion = "" },
		"version named null": func(b *Binding) { *b.ObjectVersion = "null" },
		"payload":            func(b *Binding) { b.PayloadHash = PayloadHash(nil) },
		"key":                func(b *Binding) { b.ExecutionKey += "x" },
		"expiry":             func(b *Binding) { *b.ExpiresAt = b.ExpiresAt.Add(time.Second) },
		"draft":              func(b *Binding) { b.ExpiresAt = nil },
	} {
		b := fullBinding()
		change(&b)
		if other, ok := seen[b.Hash()]; ok {
			t.Errorf("changing %s gives the hash of changing %s", name, other)
		}
		seen[b.Hash()] = name
	}
}
