package handlers

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
)

// A body that never comes ends the connection, whoever sends it and wherever to.
func TestABodyThatNeverComesHoldsNothing(t *testing.T) {
	e := newEnv(t)
	server, inner := e.open(e.Console)
	inner.bodyTime = 100 * time.Millisecond
	for _, path := range []string{"/v1/actions", "/nope", "/login", "/healthz"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", path)
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("POST %s: the connection is still held", path)
		}
	}
}

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
