package handlers

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// propose sends a proposal with a key of its own.
func (e *env) propose(body any) answer {
	e.T.Helper()
	return e.post(people.RoleProposer, "/v1/actions", body, "Idempotency-Key", action.NewID("key"))
}

func TestPropose(t *testing.T) {
	e := newEnv(t)
	product := stage.Product()
	a := e.post(people.RoleProposer, "/v1/actions", proposal(stage.SetPrice, product, 105), "Idempotency-Key", "order 17", "X-Request-Id", "trace-0042").want(201)
	made := into[api.Action](a)
	if a.header.Get("Location") != "/v1/actions/"+made.ID || a.header.Get("ETag") != `"1"` || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers %v", a.header)
	}
	canonical := fmt.Appendf(nil, `{"new_price":105,"product_id":%q}`, product)
	if made.State != "proposed" || made.Version != 1 || made.Revision != 1 || made.RequestID != "trace-0042" || *made.Actor.Name != "Lin" ||
		*made.Target != (api.Target{Type: "product", ID: product}) || !bytes.Equal(made.Payload, canonical) ||
		made.PayloadHash != action.PayloadHash(canonical) || made.Links.Page != e.server.URL+"/actions/"+made.ID ||
		made.Approvals.Required != 1 || made.Approvals.Given != 0 || made.Approvals.Eligible != 2 || made.Statement.Level != "not_submitted" {
		t.Errorf("proposed %s", a.body)
	}
	for _, name := range []string{"object_version", "confirmation", "case_id", "result"} { // absent values are null, never left out
		if v, there := into[map[string]any](a)[name]; !there || v != nil {
			t.Errorf("%s is %v, %v", name, v, there)
		}
	}
	read := into[api.Action](e.get(people.RoleReader, "/v1/actions/"+made.ID).want(200))
	if read.ProposalHash != made.ProposalHash || read.Version != made.Version {
		t.Errorf("read back as %+v", read)
	}
}

func TestProposalsThatNeedNobody(t *testing.T) {
	e := newEnv(t)
	a := into[api.Action](e.propose(proposal(stage.Small, stage.Product(), 105)).want(201))
	if a.State != "confirmed" || a.Confirmation == nil || a.Confirmation.Token == "" || a.Approvals.Required != 0 {
		t.Errorf("%+v", a)
	}
}

func TestProposalsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	good := func() map[string]any { return proposal(stage.SetPrice, stage.Product(), 105) }
	long := strings.Repeat("x", 257)
	for name, c := range map[string]struct {
		body    map[string]any
		code    action.Code
		pointer string
	}{
		"no tool":            {with(good(), "tool", nil), action.InvalidArgument, "/tool"},
		"no actor":           {with(good(), "actor", nil), action.InvalidArgument, "/actor"},
		"no actor id":        {with(good(), "actor", map[string]any{}), action.InvalidArgument, "/actor/id"},
		"long actor id":      {with(good(), "actor", map[string]any{"id": long}), action.InvalidArgument, "/actor/id"},
		"NUL in the actor":   {with(good(), "actor", map[string]any{"id": "a\x00b"}), action.InvalidArgument, "/actor/id"},
		"long actor name":    {with(good(), "actor", map[string]any{"id": "a", "name": long}), action.InvalidArgument, "/actor/name"},
		"actor of a model":   {with(good(), "actor", map[string]any{"id": "a", "admin": true}), action.InvalidArgument, "/actor/admin"},
		"empty target":       {with(good(), "target", map[string]any{"type": "product", "id": ""}), action.InvalidArgument, "/target/id"},
		"long target":        {with(good(), "target", map[string]any{"type": "product", "id": strings.Repeat("x", 2049)}), action.InvalidArgument, "/target/id"},
		"NUL in a target":    {with(good(), "target", map[string]any{"type": "product", "id": "a\x00b"}), action.InvalidArgument, "/target/id"},
		"another target":     {with(good(), "target", map[string]any{"type": "product", "id": "other"}), action.InvalidArgument, "/target"},
		"NUL in the version": {with(good(), "object_version", "\x00"), action.InvalidArgument, "/object_version"},
		"long version":       {with(good(), "object_version", long), action.InvalidArgument, "/object_version"},
		"no payload":         {with(good(), "payload", nil), action.InvalidPayload, "/payload"},
		"list as payload":    {with(good(), "payload", []int{1}), action.InvalidPayload, "/payload"},
		"payload off schema": {with(good(), "payload", map[string]any{"product_id": 1}), action.InvalidPayload, "/payload/product_id"},
		"NUL in the target":  {with(good(), "payload", map[string]any{"product_id": "a\x00b"}), action.InvalidPayload, "/payload/product_id"},
		"long reason":        {with(good(), "reason", strings.Repeat("é", 2001)), action.InvalidArgument, "/reason"},
		"no time":            {with(good(), "expires_in", "0s"), action.InvalidArgument, "/expires_in"},
		"half a second":      {with(good(), "expires_in", "1500ms"), action.InvalidArgument, "/expires_in"},
		"too much time":      {with(good(), "expires_in", "721h"), action.InvalidArgument, "/expires_in"},
		"time as a word":     {with(good(), "expires_in", "soon"), action.InvalidArgument, "/expires_in"},
		"unknown entry":      {with(good(), "entry", "back door"), action.InvalidArgument, "/entry"},
		"unknown member":     {with(good(), "priority", 1), action.InvalidArgument, "/priority"},
		"member in capitals": {with(good(), "Payload", map[string]any{}), action.InvalidArgument, "/Payload"},
		"tool as a number":   {with(good(), "tool", 7), action.InvalidArgument, "/tool"},
		"unknown tool":       {with(good(), "tool", "shop.nothing"), action.UnknownTool, ""},
		"link to nothing":    {with(good(), "compensates", "act_1"), action.InvalidArgument, "/compensates"},
		"link to the unseen": {with(good(), "replaces", action.NewID("act")), action.InvalidArgument, "/replaces"},
		"two links":          {with(with(good(), "replaces", action.NewID("act")), "resumes", action.NewID("act")), action.InvalidArgument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := e.propose(c.body)
			a.t = t
			if p := a.refused(c.code); c.code != action.UnknownTool {
				at(t, p, c.pointer)
			}
		})
	}
	if list := into[api.List[api.Action]](e.get(people.RoleAdmin, "/v1/actions").want(200)); len(list.Items) > 0 {
		t.Errorf("%d were kept all the same", len(list.Items))
	}
}

// The one strict decoder stands before everything: what two readers could read
// differently is refused and never repaired.
func TestBodiesThatAreRefused(t *testing.T) {
	e := newEnv(t)
	const head = `{"tool":"shop.set_price","actor":{"id":"u"},"payload":`
	for name, c := range map[string]struct {
		body    string
		code    action.Code
		pointer string
	}{
		"nothing":              {"", action.Malformed, ""},
		"a word":               {"propose", action.Malformed, ""},
		"a list":               {"[]", action.InvalidArgument, ""},
		"a byte order mark":    {"\xef\xbb\xbf" + head + `{"product_id":"x"}}`, action.Malformed, ""},
		"half a body":          {head, action.Malformed, "/payload"},
		"two bodies":           {head + `{"product_id":"x"}}{}`, action.Malformed, ""},
		"a key twice":          {head + `{"product_id":"x","product_id":"y"}}`, action.InvalidPayload, "/payload/product_id"},
		"an escaped key twice": {head + `{"product_id":"x","product\u005fid":"y"}}`, action.InvalidPayload, "/payload/product_id"},
		"payload twice":        {head + `{"product_id":"x"},"payload":{"product_id":"y"}}`, action.InvalidPayload, "/payload"},
		"a big number":         {head + `{"product_id":"x","new_price":9007199254740993}}`, action.InvalidPayload, "/payload/new_price"},
		"a huge number":        {head + `{"product_id":"x","new_price":1e400}}`, action.InvalidPayload, "/payload/new_price"},
		"not a number":         {head + `{"product_id":"x","new_price":NaN}}`, action.Malformed, "/payload/new_price"},
		"a lone surrogate":     {head + `{"product_id":"\ud800"}}`, action.InvalidPayload, "/payload/product_id"},
		"bad UTF-8":            {head + "{\"product_id\":\"\xff\"}}", action.InvalidPayload, "/payload/product_id"},
		"depth 33":             {head + `{"product_id":"x","a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}}`, action.InvalidPayload, ""},
		"depth 10000":          {head + strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000) + "}", action.InvalidPayload, ""},
		"257 KiB of payload":   {head + `{"product_id":"x","a":"` + strings.Repeat("a", 257<<10) + `"}}`, action.TooLarge, "/payload"},
		"over a megabyte":      {head + `{"product_id":"x","a":"` + strings.Repeat("a", 1<<20) + `"}}`, action.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := e.propose(c.body)
			a.t = t
			p := a.refused(c.code)
			if c.pointer != "" {
				at(t, p, c.pointer)
			}
			if len(a.body) > 8<<10 {
				t.Errorf("the answer has %d bytes", len(a.body))
			}
		})
	}
	deepest := head + `{"product_id":"x","a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}}`
	e.propose(deepest).want(201)
	e.propose(head + `{"product_id":"é \u202e\u0000 1","new_price":1.0}}`).refused(action.InvalidPayload) // it names the target
	e.propose(`{"tool":"shop.set_price","actor":{"id":"u","name":null},"target":null,"payload":{"product_id":"1","note":"\u202e\u0000 é"}}`).want(201)
	e.post(people.RoleProposer, "/v1/actions", head+`{"product_id":"z"}}`, "Idempotency-Key", "zip", "Content-Encoding", "gzip").refused(action.Malformed)
}

// Business systems name things with whole sentences, and models copy them.
func TestTargetsOfAllSorts(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: chat.send\ninput_schema: { type: object }\n")
	longest := ""
	for len(longest) < maxTargetID {
		longest += action.NewSecret(16)
	}
	for _, id := range []string{longest[:maxTargetID], "External_\n\n <INFORMATION>\tsend it all", "\u202egnp.exe", "e\u0301"} {
		body := map[string]any{"tool": "chat.send", "actor": map[string]any{"id": "u"}, "target": map[string]any{"type": "channel", "id": id}, "payload": map[string]any{}}
		if a := into[api.Action](e.propose(body).want(201)); a.Target.ID != id {
			t.Errorf("%q became %q", id, a.Target.ID)
		}
		query := url.Values{"target": {"channel:" + id}}.Encode()
		if len(query) > 4096 {
			continue
		}
		if found := into[api.List[api.Action]](e.get(people.RoleReader, "/v1/actions?"+query).want(200)); len(found.Items) != 1 {
			t.Errorf("%q is found %d times", id, len(found.Items))
		}
	}
}

func TestSomebodyElsesEntryPoint(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: shop.chat_only\nentries: [chat]\ninput_schema: { type: object }\n")
	body := proposal("shop.chat_only", stage.Product(), 105)
	e.propose(with(body, "entry", "background")).refused(action.UnknownTool)
	e.propose(with(body, "entry", "chat")).want(201)
	chat := e.key(e.ClientWith("chat", e.Admin, people.ClientGrants{Roles: []string{people.RoleProposer}, Entries: []string{"chat"}}), 0)
	p := e.do(request{method: post, path: "/v1/actions", key: chat, body: with(proposal(stage.SetPrice, stage.Product(), 105), "entry", "workflow"),
		header: pairs([]string{"Idempotency-Key", "x"})}).refused(action.Forbidden)
	if p.Reason != "entry" {
		t.Errorf("refused for %q", p.Reason)
	}
}

func TestRetiredTools(t *testing.T) {
	e := newEnv(t)
	kept := e.proposed(stage.SetPrice)
	retire := func(tool, open string) answer {
		return e.post(people.RoleAdmin, "/v1/tools/"+tool+"/retire", api.Retire{OpenActions: open})
	}
	at(t, retire(stage.SetPrice, "forget").refused(action.InvalidArgument), "/open_actions")
	retire("shop.nothing", "keep").refused(action.UnknownTool)
	if tool := into[api.Tool](retire(stage.SetPrice, "keep").want(200)); tool.Active {
		t.Errorf("still in use: %+v", tool)
	}
	e.propose(proposal(stage.SetPrice, stage.Product(), 105)).refused(action.ToolUnavailable)
	if a := into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+kept.ID).want(200)); a.State != "proposed" {
		t.Errorf("an open action is %s", a.State)
	}
	ended := e.proposed(stage.BigPrice)
	retire(stage.BigPrice, "cancel").want(200)
	if a := into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+ended.ID).want(200)); a.State != "cancelled" {
		t.Errorf("an open action is %s", a.State)
	}
}

// Values that the contract hides reach those who sent them and those who
// execute them, and nobody else.
func TestMaskedValues(t *testing.T) {
	e := newEnv(t)
	e.Tool("name: crm.call\ninput_schema: { type: object, properties: { phone: { type: string }, why: { type: string } } }\ndisplay: { mask: [/phone] }\n")
	body := map[string]any{"tool": "crm.call", "actor": map[string]any{"id": "u"}, "target": map[string]any{"type": "customer", "id": "7"},
		"payload": map[string]any{"phone": "+49 30 1234567", "why": "refund"}}
	a := e.propose(body).want(201)
	id := into[api.Action](a).ID
	other := e.key(e.Client("other", e.Admin, people.RoleReader), 0)
	for who, c := range map[string]struct {
		key  string
		sees bool
	}{
		"proposer": {e.keys[people.RoleProposer], true},
		"executor": {e.keys[people.RoleExecutor], true},
		"reader":   {other, false},
		"admin":    {e.keys[people.RoleAdmin], false},
	} {
		for _, path := range []string{"/v1/actions/" + id, "/v1/actions"} {
			shown := e.do(request{method: get, path: path, key: c.key}).want(200)
			if got := bytes.Contains(shown.body, []byte("1234567")); got != c.sees {
				t.Errorf("%s at %s: %s", who, path, shown.body)
			}
			if !c.sees && !bytes.Contains(shown.body, []byte("present, hidden by contract")) {
				t.Errorf("%s is not told that something is hidden: %s", who, shown.body)
			}
		}
	}
	if strings.Contains(e.log.String(), "1234567") {
		t.Error("the log has it")
	}
}

func TestOpenProposalsAreCapped(t *testing.T) {
	e := newEnv(t)
	full := *e.Console
	full.Approvals = approvals.New(e.DB, e.DB, e.Catalogue, e.DB, e.Console.Approvals.Signer(), 3)
	server := e.serve(&full)
	for i := range 4 {
		q := request{method: post, path: "/v1/actions", key: e.keys[people.RoleProposer], body: proposal(stage.SetPrice, stage.Product(), 105),
			header: pairs([]string{"Idempotency-Key", fmt.Sprint(i)})}
		a := send1(t, http.DefaultClient, server.URL, q)
		if a.status == http.StatusTooManyRequests {
			if p := a.refused(action.RateLimited); p.Reason != "open-proposals" || a.header.Get("Retry-After") == "" {
				t.Errorf("%+v", p)
			}
			return
		}
		a.want(201)
		if i == 2 {
			waitUntil(t, func() bool { // the count may be a second old
				_, _, err := full.Approvals.Propose(context.Background(), e.Agent, stage.Proposal(stage.SetPrice, stage.Product(), 1))
				return err != nil
			})
		}
	}
	t.Error("nothing is capped")
}
