package handlers

import (
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/store/stage"
)

// Where only the program says what an action is about, whoever decides is warned
// when what will be sent does not name that object.
func TestAnObjectThatTheContentDoesNotNameIsWarnedOf(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: desk.refund\ndescription: Refunds an order\ninput_schema: { type: object }\n")
	mia := e.as(e.Mia)
	propose := func(payload map[string]any) api.Action {
		t.Helper()
		return into[api.Action](e.propose(map[string]any{"tool": "desk.refund", "actor": map[string]any{"id": "u-17"},
			"target": map[string]any{"type": "order", "id": "1001"}, "payload": payload}).want(201))
	}
	odd := propose(map[string]any{"order_id": 1002, "note": "in place of order 1001", "lines": []any{10010, "x1001"}})
	mia.open("/approvals").says("Names another object")
	mia.open("/actions/" + odd.ID).says("The request names order 1001 as its object; 1001 is no value of what will be sent.")
	mia.send("/language", formOf("lang", "zh", "op", newOp(), "next", "/approvals"))
	mia.open("/approvals").says("对象不在内容中")
	mia.open("/actions/" + odd.ID).says("将要发送的内容中没有 1001 这个值")
	mia.send("/language", formOf("lang", "en", "op", newOp(), "next", "/approvals"))

	for _, payload := range []map[string]any{{"order_id": 1001}, {"order": map[string]any{"ids": []any{"7", "1001"}}}, {"1001": "cancelled"}} {
		mia.open("/actions/" + propose(payload).ID).want(200).lacks("names order 1001 as its object")
	}
	p := proposal(stage.SetPrice, "SKU-1", 105) // the contract takes the target from the payload, and a request cannot name another
	e.propose(with(p, "target", map[string]any{"type": "product", "id": "SKU-2"})).refused(action.InvalidArgument)
	mia.open("/actions/" + into[api.Action](e.propose(p).want(201)).ID).want(200).lacks("as its object")
}
