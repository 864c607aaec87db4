package handlers

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
)

// shared returns a folder of the shared test data, or skips the test.
func shared(t *testing.T, name string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared test data is not on this machine: %v", err)
	}
	return path
}

// Every real tool definition is put, and every real proposal proposed, through
// the API. What the schema takes is proposed under the hash that an independent
// RFC 8785 gives; what it does not is refused with the places.
func TestRealToolsAndProposals(t *testing.T) {
	tools, extra, dev := shared(t, "tools"), shared(t, "tools_extra"), shared(t, "dev")
	e := newEnv(t)
	put := 0
	for _, folder := range []string{tools, extra} {
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var named struct{ Name string }
			if err := json.Unmarshal(raw, &named); err != nil {
				t.Fatal(err)
			}
			e.putTool(named.Name, "application/json", string(raw)).want(201)
			put++
		}
	}
	if put != 436 {
		t.Errorf("put %d definitions, want 436", put)
	}
	file, err := os.Open(filepath.Join(dev, "proposals.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	var running sync.WaitGroup
	var valid atomic.Int64
	slots := make(chan struct{}, 8)
	n := 0
	for lines.Scan() {
		n++
		var line realProposal
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		line.number = n
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if e.judged(t, line) {
				valid.Add(1)
			}
		})
	}
	running.Wait()
	if err := lines.Err(); err != nil || n != 2158 {
		t.Errorf("proposed %d lines, want 2158: %v", n, err)
	}
	t.Logf("%d tools, %d proposals: %d taken, %d refused", put, n, valid.Load(), int64(n)-valid.Load())
}

type realProposal struct {
	number  int
	Tool    string
	Actor   string
	Target  *string
	Payload json.RawMessage
	Valid   bool `json:"expected_schema_valid"`
}

// judged proposes a real proposal, for an actor of its own so that none is a
// duplicate, and reports whether it was taken.
func (e *env) judged(t *testing.T, line realProposal) bool {
	body := map[string]any{"tool": line.Tool, "actor": map[string]any{"id": fmt.Sprintf("%s #%d", line.Actor, line.number)}, "payload": line.Payload}
	if line.Target != nil {
		if typ, id, ok := strings.Cut(*line.Target, ":"); ok {
			body["target"] = map[string]any{"type": typ, "id": id}
		}
	}
	a := e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", fmt.Sprint("line ", line.number))
	if !line.Valid {
		if p := into[api.Problem](a); a.status != 422 || p.Code != string(action.InvalidPayload) || len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Pointer, "/payload") {
			t.Errorf("line %d, %s: want a refusal of the payload, got %d %s", line.number, line.Tool, a.status, a.body)
		}
		return false
	}
	if a.status != 201 {
		t.Errorf("line %d, %s: %d %s", line.number, line.Tool, a.status, a.body)
		return false
	}
	sum := sha256.Sum256(independentJCS(t, line.Payload))
	made := into[api.Action](a)
	if want := "sha256:" + hex.EncodeToString(sum[:]); made.PayloadHash != want {
		t.Errorf("line %d, %s: payload_hash %s, want %s", line.number, line.Tool, made.PayloadHash, want)
	}
	if !bytes.Equal(made.Payload, independentJCS(t, line.Payload)) {
		t.Errorf("line %d, %s: payload %s", line.number, line.Tool, made.Payload)
	}
	return true
}
