package handlers

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func TestIdempotencyKeys(t *testing.T) {
	e := newEnv(t)
	body := proposal(stage.SetPrice, stage.Product(), 105)
	send := func(key string, body any) answer {
		return e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", key)
	}
	first := into[api.Action](send("k1", body).want(201))
	again := send("k1", with(body, "payload", map[string]any{"new_price": 105.0, "product_id": first.Target.ID})).want(201)
	if into[api.Action](again).ID != first.ID || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("ETag") != `"1"` {
		t.Errorf("repeated as %s", again.body)
	}
	e.Approve(e.Read(first.ID), e.Mia)
	if later := into[api.Action](send("k1", body).want(201)); later.ID != first.ID || later.State != "confirmed" {
		t.Errorf("repeated later as %+v", later)
	}
	for name, changed := range map[string]map[string]any{
		"payload": with(body, "payload", map[string]any{"product_id": first.Target.ID, "new_price": 106}),
		"actor":   with(body, "actor", map[string]any{"id": "u-18"}),
		"reason":  with(body, "reason", "another"),
		"draft":   with(body, "draft", true),
		"tool":    with(body, "tool", stage.BigPrice),
	} {
		if p := send("k1", changed).refused(action.IdempotencyKeyReused); p.Args["action"] != first.ID {
			t.Errorf("another %s: names %v", name, p.Args)
		}
	}
	if p := send("k2", body).refused(action.DuplicateOpenAction); p.Args["action"] != first.ID {
		t.Errorf("the same under another key: names %v", p.Args)
	}
	other := e.key(e.Client("other", e.Admin, people.RoleProposer), 0) // keys are each client's own
	theirs := e.do(request{method: post, path: "/v1/actions", key: other, body: proposal(stage.SetPrice, stage.Product(), 105), header: pairs([]string{"Idempotency-Key", "k1"})})
	if into[api.Action](theirs.want(201)).ID == first.ID {
		t.Error("another client got this client's action")
	}
	e.post(people.RoleProposer, "/v1/actions", body).refused(action.MissingIdempotencyKey)
	send("", body).refused(action.MissingIdempotencyKey)
	send(strings.Repeat("k", 256), body).refused(action.Malformed)
	send("k\tk", body).refused(action.Malformed)
	send("ключ", body).refused(action.Malformed)
	send(strings.Repeat("k", 255), proposal(stage.SetPrice, stage.Product(), 105)).want(201)
}

func TestManyAtOnceWithOneKey(t *testing.T) {
	e := newEnv(t)
	body := proposal(stage.SetPrice, stage.Product(), 105)
	var running sync.WaitGroup
	answers := make([]answer, 20)
	for i := range answers {
		running.Go(func() { answers[i] = e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", "one") })
	}
	running.Wait()
	fresh, ids := 0, map[string]bool{}
	for _, a := range answers {
		ids[into[api.Action](a.want(201)).ID] = true
		if a.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}
	if fresh != 1 || len(ids) != 1 {
		t.Errorf("%d made, %d actions", fresh, len(ids))
	}
}

// REPORTS 31: a key answers for what it was used for, and to whom it is. Another
// amount under it is refused, and another account gets nothing of the first one's.
func TestReport31_AKeyIsOfOneContentAndOneClient(t *testing.T) {
	e := newEnv(t)
	other := e.key(e.Client("other", e.Admin, people.RoleProposer), 0)
	send := func(key string, body any) answer {
		t.Helper()
		return e.do(request{method: post, path: "/v1/actions", key: key, body: body, header: pairs([]string{"Idempotency-Key", "order-10086"})})
	}
	mine := e.keys[people.RoleProposer]
	first := into[api.Action](send(mine, proposal(stage.SetPrice, "SKU-1", 42)).want(201))
	if p := send(mine, proposal(stage.SetPrice, "SKU-1", 43)).refused(action.IdempotencyKeyReused); p.Args["action"] != first.ID {
		t.Errorf("another amount: %+v", p)
	}
	send(mine, with(proposal(stage.SetPrice, "SKU-1", 42), "actor", map[string]any{"id": "u-18"})).refused(action.IdempotencyKeyReused)
	theirs := send(other, proposal(stage.SetPrice, "SKU-2", 42)).want(201)
	if a := into[api.Action](theirs); a.ID == first.ID || a.ExecutionKey == first.ExecutionKey || theirs.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("another account got %s", theirs.body)
	}
	refused := send(other, proposal(stage.SetPrice, "SKU-2", 43))
	refused.refused(action.IdempotencyKeyReused)
	for _, a := range []answer{theirs, refused} {
		if bytes.Contains(a.body, []byte(first.ID)) || bytes.Contains(a.body, []byte(first.ExecutionKey)) || bytes.Contains(a.body, []byte("SKU-1")) {
			t.Errorf("another account is told of the first one's: %s", a.body)
		}
	}
	e.do(request{method: get, path: "/v1/actions/" + first.ID, key: other}).refused(action.NotFound)
	if again := send(mine, proposal(stage.SetPrice, "SKU-1", 42)).want(201); into[api.Action](again).ID != first.ID || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again: %s", again.body)
	}
}
