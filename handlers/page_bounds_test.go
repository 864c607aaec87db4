package handlers

import (
	"fmt"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
)

// One large proposal costs its row no more than it must.
func TestAPayloadOfManyFieldsIsShownInParts(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: many.fields\ninput_schema: { type: object }\n")
	fields := make([]string, 15_000)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"k%05d":%d`, i, i)
	}
	a := e.Propose(approvals.Proposal{Key: action.NewID("key"), Tool: "many.fields", Actor: action.Actor{ID: "u-17"},
		Payload: []byte("{" + strings.Join(fields, ",") + "}")})
	b := e.as(e.Person("reader", people.RoleSupport))
	queue := b.open("/approvals")
	queue.says("Fields")
	page := b.open("/actions/" + a.ID)
	page.lacks("k14999").lacks(`value="approve"`)
	b.open("/actions/" + a.ID + "?view=full").holds("k14999")
}
