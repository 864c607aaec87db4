package handlers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// calledBack is a tool whose business system tells by itself what became of an
// operation.
const calledBack = "shop.called_back"

const calledBackPart = `callback: { key: /data/key, outcome: { field: /data/status, succeeded: [DONE], queued: [QUEUED], failed: [REFUSED] } }`

// desk is a business system that signs what it sends.
type desk struct {
	*env
	secrets []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{env: newEnv(t)}
	d.Tool(stage.Contract(calledBack, "", calledBackPart))
	d.secrets = []string{d.secret(calledBack)}
	return d
}

func (d *desk) secret(tool string) string {
	d.T.Helper()
	secret, err := d.Callbacks.AddSecret(context.Background(), tool, "", action.By{Kind: action.BySystem})
	if err != nil {
		d.T.Fatal(err)
	}
	return secret
}

// letter is a callback to send.
type letter struct {
	id, body string
	tool     string // calledBack when empty
	base     string // the desk's console when empty
	age      time.Duration
	key      string // "" for the desk's own secrets
	change   func(http.Header)
}

func (d *desk) send(l letter) answer {
	d.T.Helper()
	at := time.Now().Add(-l.age).Unix()
	secrets := d.secrets
	if l.key != "" {
		secrets = []string{l.key}
	}
	signatures := []string{"v0,YWJj", "v1", "v1,%%"} // of schemes and forms that nobody here knows
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			d.T.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", l.id, at, l.body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	header := http.Header{}
	header.Set("webhook-id", l.id)
	header.Set("webhook-timestamp", fmt.Sprint(at))
	header.Set("webhook-signature", strings.Join(signatures, " "))
	if l.change != nil {
		l.change(header)
	}
	q := request{method: post, path: "/v1/callbacks/" + calledBack, body: l.body, header: map[string]string{}}
	if l.tool != "" {
		q.path = "/v1/callbacks/" + l.tool
	}
	for name := range header {
		q.header[name] = header.Get(name)
	}
	if l.base == "" {
		l.base = d.server.URL
	}
	return send1(d.T, d.server.Client(), l.base, q)
}

func about(key, status string) string {
	return fmt.Sprintf(`{"type":"x","data":{"key":%q,"status":%q}}`, key, status)
}

// taken says what became of a callback that was taken.
func (a answer) taken(status int, said string) {
	a.t.Helper()
	if got := into[api.CallbackTaken](a.want(status)); got.Status != said {
		a.t.Errorf("taken as %q, want %q", got.Status, said)
	}
}

func TestCallbacksAreSigned(t *testing.T) {
	d := newDesk(t)
	d.Tool(stage.Contract("shop.other", "", calledBackPart))
	other := d.secret("shop.other")
	a, _, _ := d.attempted(calledBack)
	body := about(a.ExecutionKey, "DONE")
	for name, l := range map[string]letter{
		"with a secret nobody agreed on": {id: "msg_1", body: body, key: "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))},
		"with another tool's secret":     {id: "msg_1", body: body, key: other},
		"six minutes ago":                {id: "msg_1", body: body, age: 6 * time.Minute},
		"in six minutes":                 {id: "msg_1", body: body, age: -6 * time.Minute},
		"not at all":                     {id: "msg_1", body: body, change: func(h http.Header) { h.Del("webhook-signature") }},
		"without an id":                  {body: body},
		"with an ambiguous id":           {id: "msg.1", body: body},
		"without a time":                 {id: "msg_1", body: body, change: func(h http.Header) { h.Del("webhook-timestamp") }},
		"under another id":               {id: "msg_1", body: body, change: func(h http.Header) { h.Set("webhook-id", "msg_2") }},
		"for an unknown tool":            {id: "msg_1", body: body, tool: "shop.none"},
		"for a tool without secrets":     {id: "msg_1", body: body, tool: stage.SetPrice},
	} {
		if p := d.send(l).refused(action.Unauthorized); p.Reason != "signature" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	d.send(letter{id: "msg_1", body: `{"a":"` + strings.Repeat("x", maxCallback) + `"}`}).refused(action.TooLarge)
	d.send(letter{id: "msg_1", body: `{"data":`}).refused(action.Malformed)
	d.send(letter{id: "msg_1", body: about("u-17", "DONE")}).refused(action.InvalidArgument)
	if a := d.Read(a.ID); a.State != action.Executing || len(a.Asks) != 0 {
		t.Errorf("something of it counted: %s, %+v", a.State, a.Asks)
	}

	d.send(letter{id: "msg_1", body: body, age: 4 * time.Minute}).taken(200, "joined")
	if a := d.Read(a.ID); a.State != action.Applied || a.Asks[0].Found.Source != "callback" || string(a.Asks[0].Snapshot) != body {
		t.Errorf("%s, %+v", a.State, a.Asks)
	}
}

func TestCallbackSecretsRotate(t *testing.T) {
	d := newDesk(t)
	a, _, _ := d.attempted(calledBack)
	first := d.secrets[0]
	second, err := d.Callbacks.RotateSecret(context.Background(), calledBack, "", time.Hour, action.By{Kind: action.BySystem})
	if err != nil {
		t.Fatal(err)
	}
	later := d.later(61 * time.Minute)
	soon := letter{id: "msg_1", body: about(a.ExecutionKey, "QUEUED"), key: first}
	d.send(soon).taken(200, "joined")
	soon.key = second
	d.send(soon).taken(200, "joined") // the same message
	late := letter{id: "msg_2", body: about(a.ExecutionKey, "DONE"), key: first, base: later.URL, age: -61 * time.Minute}
	d.send(late).refused(action.Unauthorized)
	late.key = second
	d.send(late).taken(200, "joined")
	if a := d.Read(a.ID); len(a.Asks) != 2 || a.State != action.Applied {
		t.Errorf("%s, %+v", a.State, a.Asks)
	}

	// What the business system made itself is taken as well; anything else is not.
	if _, err := d.Callbacks.AddSecret(context.Background(), calledBack, first, action.By{Kind: action.BySystem}); err != nil {
		t.Error(err)
	}
	_, err = d.Callbacks.AddSecret(context.Background(), calledBack, "whsec_c2hvcnQ=", action.By{Kind: action.BySystem})
	d.Refused(err, action.InvalidArgument)
	_, err = d.Callbacks.AddSecret(context.Background(), stage.SetPrice, "", action.By{Kind: action.BySystem})
	d.Refused(err, action.InvalidArgument) // its contract could not read any
}

// A trusted callback is one way out of an unknown outcome, and counts once.
func TestA4_CallbackSettlesAnUnknownOutcome(t *testing.T) {
	d := newDesk(t)
	for status, state := range map[string]action.State{"DONE": action.Applied, "REFUSED": action.Failed, "WHATEVER": action.ResultUnknown} {
		a, claim, attempt := d.attempted(calledBack)
		d.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201)
		l := letter{id: "msg_" + status, body: about(a.ExecutionKey+":notify", status)}
		d.send(l).taken(200, "joined")
		once := d.Read(a.ID)
		d.send(l).taken(200, "joined")
		if again := d.Read(a.ID); once.State != state || again.Version != once.Version || len(again.Asks) != 1 {
			t.Errorf("%s: %s at %d, then at %d", status, once.State, once.Version, again.Version)
		}
		l.body += " "
		d.send(l).taken(200, "joined") // the same content
		l.body = about(a.ExecutionKey, "QUEUED")
		d.send(l).refused(action.IdempotencyKeyInUse)
	}
}

func TestReport30_EarlyCallbacksWaitForTheirAttempt(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	join := func() {
		t.Helper()
		if err := d.Callbacks.JoinParked(ctx); err != nil {
			t.Fatal(err)
		}
	}
	parked := func() int {
		t.Helper()
		all, _, err := d.DB.ParkedCallbacks(ctx, people.Viewer{All: true}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	a, claim := d.claimed(calledBack)
	early := letter{id: "msg_1", body: about(a.ExecutionKey, "DONE")}
	d.send(early).taken(202, "parked")
	d.send(early).taken(202, "parked")
	d.send(letter{id: "msg_1", body: about(a.ExecutionKey, "REFUSED")}).refused(action.IdempotencyKeyInUse)
	join()
	if a := d.Read(a.ID); parked() != 1 || a.State != action.Executing || len(a.Asks) != 0 {
		t.Fatalf("%d parked, %s, %+v", parked(), a.State, a.Asks)
	}
	d.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: "att-1", ClaimID: claim, Fingerprint: "sha256:ab"}).want(201)
	join()
	if a := d.Read(a.ID); parked() != 0 || a.State != action.Applied || len(a.Asks) != 1 {
		t.Errorf("%d parked, %s, %+v", parked(), a.State, a.Asks)
	}
	d.send(early).taken(200, "joined") // and counts no more
	if a := d.Read(a.ID); len(a.Asks) != 1 {
		t.Errorf("%+v", a.Asks)
	}

	// One that nobody here attempted contradicts what ended without an attempt.
	never := d.proposed(calledBack)
	d.send(letter{id: "msg_2", body: about(never.ExecutionKey, "DONE")}).taken(202, "parked")
	d.post(people.RoleProposer, "/v1/actions/"+never.ID+"/cancel", nil, "If-Match", quotedVersion(never.Version)).want(200)
	join()
	if a := d.Read(never.ID); a.State != action.ResultUnknown || a.Case.Kind != action.CaseContradiction {
		t.Errorf("%s, %+v", a.State, a.Case)
	}

	// One about nothing that is known here is kept for a week, and seen after it.
	d.send(letter{id: "msg_3", body: about(action.NewID("exk"), "DONE")}).taken(202, "parked")
	all, now, err := d.DB.ParkedCallbacks(ctx, people.Viewer{All: true}, 10)
	if err != nil || len(all) != 1 || all[0].ExpiresAt.Sub(now).Round(time.Hour) != 7*24*time.Hour {
		t.Errorf("%+v, %v", all, err)
	}
	if err := d.DB.TidyCallbacks(ctx); err != nil || parked() != 1 {
		t.Errorf("%d parked, %v", parked(), err)
	}
	olga := d.as(d.Person("olga", people.RoleOps))
	olga.open("/triage").want(200).holds(`href="/triage/callbacks"`)
	olga.open("/triage/callbacks").want(200).says(all[0].Key, "message msg_3", "happened", calledBack)
	d.as(d.Mia).open("/triage/callbacks").want(http.StatusForbidden)
	elsewhere := d.as(d.PersonWith("eve", people.Grants{Roles: []string{people.RoleOps}, Scopes: []string{"shop"}}))
	elsewhere.open("/triage/callbacks").want(200).says("No callback waits")
}
