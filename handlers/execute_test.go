package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

// The whole way of one action through the API.
func TestFromProposalToApplied(t *testing.T) {
	e := newEnv(t)
	e.Tool(stage.Contract("shop.shown", "", "") + "display: { allow_output: [/status] }\n")
	a := e.proposed("shop.shown")
	if work := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work?tool=shop.*").want(200)); len(work.Items) > 0 {
		t.Errorf("offered before anybody decided: %+v", work.Items)
	}
	e.Approve(e.Read(a.ID), e.Mia)
	work := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work?tool=other.*&tool=shop.shown").want(200))
	if len(work.Items) != 1 || work.Items[0].Kind != "execute" || work.Items[0].ConfirmationRef == nil || work.Items[0].ProposalHash != a.ProposalHash {
		t.Fatalf("offered %+v", work.Items)
	}
	ref := "/v1/confirmations/" + *work.Items[0].ConfirmationRef
	state := into[api.ConfirmationState](e.get(people.RoleExecutor, ref).want(200))
	if state.ActionID != a.ID || state.State != "confirmed" || state.ProposalHash != a.ProposalHash || state.Token == "" {
		t.Errorf("the confirmation says %+v", state)
	}
	claimed := into[api.Claimed](e.post(people.RoleExecutor, ref+"/claim", bound(a, "process-1")).want(200))
	pinned, err := contract.Parse(claimed.Contract)
	if err != nil || pinned.Name != "shop.shown" || !bytes.Equal(claimed.Payload, a.Payload) || claimed.ExecutionKey != a.ExecutionKey ||
		claimed.Lease.TTLMillis < 590_000 || claimed.Lease.TTLMillis > 600_000 {
		t.Errorf("claimed %+v, %v", claimed, err)
	}
	lease := into[api.Lease](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/lease", api.Renew{ClaimID: "process-1"}).want(200))
	if lease.ExpiresAt.Before(claimed.Lease.ExpiresAt) {
		t.Errorf("renewed to %v", lease)
	}
	attempt := api.Attempt{AttemptID: "try-1", ClaimID: "process-1", Fingerprint: "sha256:ab"}
	started := into[api.AttemptStarted](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", attempt).want(201))
	if started.Number != 1 || started.SendWithinMillis <= 0 || started.SendWithinMillis > 5000 {
		t.Errorf("started %+v", started)
	}
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", attempt).want(201)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: "try-2", ClaimID: "process-1", Fingerprint: "sha256:ab"}).refused(action.AttemptOpen)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/release", api.Release{ClaimID: "process-1"}).refused(action.AttemptOpen)
	report := receipt("try-1", "process-1", action.Success)
	report.Body = []byte(`{"status":"done","secret":"s3cr3t"}`)
	done := e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", report).want(201)
	shown := into[api.Action](done)
	if shown.State != "applied" || shown.HandlerExecutions != 1 || string(shown.Result) != `{"status":"done"}` || shown.Statement.Level != "completed" ||
		*shown.Attempts[0].Outcome != "SUCCESS" || *shown.Receipts[0].Proves != "completed" {
		t.Errorf("done: %s", done.body)
	}
	if bytes.Contains(done.body, []byte("s3cr3t")) {
		t.Error("shown is what the contract does not allow")
	}
	again := into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", report).want(201))
	if again.Version != shown.Version || len(again.Receipts) != 1 {
		t.Errorf("repeated: %+v", again)
	}
	report.HTTPStatus = 201
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", report).refused(action.IdempotencyKeyInUse)
	e.post(people.RoleExecutor, ref+"/claim", bound(a, "process-2")).refused(action.WrongState)
	e.post(people.RoleExecutor, ref+"/claim", bound(a, "process-1")).refused(action.LeaseLost)
}

func TestUnknownOutcomeBlocksItsTarget(t *testing.T) {
	e := newEnv(t)
	a, claim, attempt := e.attempted(stage.SetPrice)
	unknown := into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201))
	if unknown.State != "result_unknown" || unknown.CaseID == nil || unknown.Statement.Level != "unknown" {
		t.Fatalf("%+v", unknown)
	}
	body := proposal(stage.SetPrice, a.Target.ID, 110)
	if p := e.propose(body).refused(action.TargetBlocked); p.Args["case"] != *unknown.CaseID {
		t.Errorf("names %v", p.Args)
	}
	e.proposeAt(e.past(), with(body, "resumes", a.ID)).want(201) // what it is linked to does not hold it up
}

func TestReleaseGivesBack(t *testing.T) {
	e := newEnv(t)
	a, claim := e.claimed(stage.SetPrice)
	address := "/v1/actions/" + a.ID + "/release"
	e.post(people.RoleExecutor, address, api.Release{ClaimID: "another"}).refused(action.LeaseLost)
	at(t, e.post(people.RoleExecutor, address, api.Release{ClaimID: claim, Code: "TIRED"}).refused(action.InvalidArgument), "/code")
	if back := into[api.Action](e.post(people.RoleExecutor, address, api.Release{ClaimID: claim}).want(200)); back.State != "confirmed" {
		t.Errorf("%+v", back)
	}
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/lease", api.Renew{ClaimID: claim}).refused(action.LeaseLost)
	claim = action.NewID("clm")
	e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, claim)).want(200)
	if over := into[api.Action](e.post(people.RoleExecutor, address, api.Release{ClaimID: claim, Code: "FORBIDDEN"}).want(200)); over.State != "failed" {
		t.Errorf("%+v", over)
	}
}

func TestObservations(t *testing.T) {
	e := newEnv(t)
	e.Tool(`name: shop.look
mode: read
input_schema: { type: object }
display: { allow_output: [/price] }
`)
	e.Tool(`name: shop.careful
mode: write
input_schema: { type: object, required: [product_id], properties: { product_id: { type: string }, new_price: { type: number } } }
target: { type: product, id: /product_id }
approval: { before: shop.look, rules: [ { when: "payload.new_price > before.price * 2.0", role: support, approvals: 2 } ] }
execution: { proves: completed }
`)
	a := e.proposed("shop.careful")
	work := into[api.WorkList](e.get(people.RoleExecutor, "/v1/work").want(200))
	if len(work.Items) != 1 || work.Items[0].Kind != "observe" || *work.Items[0].Read != "shop.look" || a.Approvals.Required != 2 {
		t.Fatalf("offered %+v for %+v", work.Items, a.Approvals)
	}
	seen := api.Observation{ObservationID: "o-1", Tool: "shop.look", Snapshot: []byte(`{"price":100,"cost":40}`), ObservedAt: time.Now()}
	answer := e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", seen).want(201)
	now := into[api.Action](answer)
	if now.Approvals.Required != 1 || string(now.Observations[0].Snapshot) != `{"price":100}` || bytes.Contains(answer.body, []byte("cost")) {
		t.Errorf("after the reading: %s", answer.body)
	}
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", seen).want(201)
	changed := seen
	changed.Snapshot = []byte(`{"price":1}`)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", changed).refused(action.IdempotencyKeyInUse)
	for pointer, wrong := range map[string]api.Observation{
		"/observation_id": {Tool: "shop.look", Snapshot: []byte(`{}`), ObservedAt: time.Now()},
		"/tool":           {ObservationID: "o-2", Snapshot: []byte(`{}`), ObservedAt: time.Now()},
		"/snapshot":       {ObservationID: "o-2", Tool: "shop.look", ObservedAt: time.Now()},
		"/observed_at":    {ObservationID: "o-2", Tool: "shop.look", Snapshot: []byte(`{}`)},
	} {
		at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", wrong).refused(action.InvalidArgument), pointer)
	}
}

func TestReportsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	a, claim, attempt := e.attempted(stage.SetPrice)
	good := receipt(attempt, claim, action.Success)
	for pointer, change := range map[string]func(*api.Receipt){
		"/receipt_id":           func(r *api.Receipt) { r.ReceiptID = "" },
		"/attempt_id":           func(r *api.Receipt) { r.AttemptID = "a b" },
		"/outcome":              func(r *api.Receipt) { r.Outcome = "success" },
		"/proves":               func(r *api.Receipt) { r.Proves = "everything" },
		"/http_status":          func(r *api.Receipt) { r.HTTPStatus = 99 },
		"/provider_ref":         func(r *api.Receipt) { r.ProviderRef = "\x00" },
		"/object_version_after": func(r *api.Receipt) { r.ObjectVersionAfter = "\x00" },
	} {
		wrong := good
		change(&wrong)
		at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", wrong).refused(action.InvalidArgument), pointer)
	}
	stray := good
	stray.AttemptID = action.NewID("att")
	at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", stray).refused(action.NotFound), "/attempt_id")
	at(t, e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/attempts", api.Attempt{AttemptID: "x", ClaimID: claim}).refused(action.InvalidArgument), "/fingerprint")
}

// TestSixtyFourClaims: one winner, and the winner's repeat is the same answer.
func TestSixtyFourClaims(t *testing.T) {
	e := newEnv(t)
	a := e.confirmed(stage.SetPrice)
	claim := func(i int) answer {
		return e.post(people.RoleExecutor, "/v1/confirmations/"+a.Confirmation.Ref+"/claim", bound(a, fmt.Sprint("process-", i)))
	}
	const many = 64
	var running sync.WaitGroup
	start := make(chan struct{})
	answers := make([]answer, many)
	for i := range many {
		running.Go(func() { <-start; answers[i] = claim(i) })
	}
	close(start)
	running.Wait()
	winner := -1
	for i, got := range answers {
		if got.status == http.StatusOK {
			if winner >= 0 {
				t.Fatalf("%d and %d won", winner, i)
			}
			winner = i
			continue
		}
		got.refused(action.AlreadyClaimed)
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	first, again := into[api.Claimed](answers[winner]), into[api.Claimed](claim(winner).want(200))
	if again.Lease.TTLMillis > first.Lease.TTLMillis || again.Now.Before(first.Now) {
		t.Errorf("the lease grew: %+v, %+v", first.Lease, again.Lease)
	}
	first.Lease.TTLMillis, first.Now = again.Lease.TTLMillis, again.Now // what is left of the lease
	if !reflect.DeepEqual(first, again) {
		t.Errorf("the winner's repeat differs: %+v, %+v", first, again)
	}
	if n := e.Count(a.ID, action.KindClaimed); n != 1 {
		t.Errorf("%d claims were recorded", n)
	}
	thief := e.key(e.Client("thief", e.Admin, people.RoleExecutor), 0) // a claim_id is bound to its client
	e.do(request{method: post, path: "/v1/confirmations/" + a.Confirmation.Ref + "/claim", key: thief, body: bound(a, fmt.Sprint("process-", winner))}).refused(action.AlreadyClaimed)
}

func TestVerifyAndClaimOnlyWhatWasApproved(t *testing.T) {
	e := newEnv(t)
	version := "7"
	body := with(proposal(stage.SetPrice, stage.Product(), 105), "object_version", version)
	a := into[api.Action](e.propose(body).want(201))
	e.Approve(e.Read(a.ID), e.Mia)
	a = into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200))
	ref := "/v1/confirmations/" + a.Confirmation.Ref
	other := "8"
	for name, c := range map[string]struct {
		hash    string
		version *string
		code    action.Code
	}{
		"another hash":    {action.PayloadHash([]byte("other")), &version, action.StaleRevision},
		"another version": {a.ProposalHash, &other, action.VersionConflict},
		"no version":      {a.ProposalHash, nil, action.VersionConflict},
	} {
		v := into[api.Verified](e.post(people.RoleReader, ref+"/verify", api.Verify{ProposalHash: c.hash, ObjectVersion: c.version}).want(200))
		if v.Valid || v.Reason == nil || *v.Reason != string(c.code) {
			t.Errorf("%s verified as %+v", name, v)
		}
		e.post(people.RoleExecutor, ref+"/claim", api.Claim{ClaimID: "p", ProposalHash: c.hash, ObjectVersion: c.version}).refused(c.code)
	}
	if v := into[api.Verified](e.post(people.RoleReader, ref+"/verify", api.Verify{ProposalHash: a.ProposalHash, ObjectVersion: &version}).want(200)); !v.Valid || v.Reason != nil {
		t.Errorf("verified as %+v", v)
	}
	at(t, e.post(people.RoleReader, ref+"/verify", `{}`).refused(action.InvalidArgument), "/proposal_hash")
	at(t, e.post(people.RoleExecutor, ref+"/claim", api.Claim{ProposalHash: a.ProposalHash, ObjectVersion: &version}).refused(action.InvalidArgument), "/claim_id")
	another := a.Confirmation.Ref[:35] + "Z"
	if another == a.Confirmation.Ref {
		another = a.Confirmation.Ref[:35] + "Y"
	}
	for _, none := range []string{another, "cnf_1", a.ID} {
		e.get(people.RoleExecutor, "/v1/confirmations/"+none).refused(action.NotFound)
		e.post(people.RoleExecutor, "/v1/confirmations/"+none+"/claim", bound(a, "p")).refused(action.NotFound)
	}
	late := e.later(31 * time.Minute)
	q := request{method: post, path: ref + "/claim", key: e.keys[people.RoleExecutor], body: bound(a, "p")}
	send1(t, http.DefaultClient, late.URL, q).refused(action.ExpiredCode)
	q.path, q.body = ref+"/verify", api.Verify{ProposalHash: a.ProposalHash, ObjectVersion: &version}
	if v := into[api.Verified](send1(t, http.DefaultClient, late.URL, q).want(200)); v.Valid || *v.Reason != "expired" {
		t.Errorf("verified later as %+v", v)
	}
}

// Reads show an action as expired before anybody has written so.
func TestExpiredWhenRead(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	late := e.later(time.Hour)
	q := request{method: get, path: "/v1/actions/" + a.ID, key: e.keys[people.RoleProposer]}
	if now := into[api.Action](send1(t, http.DefaultClient, late.URL, q).want(200)); now.State != "expired" || now.Version != a.Version {
		t.Errorf("%+v", now)
	}
	q = request{method: post, path: "/v1/actions/" + a.ID + "/revisions", key: e.keys[people.RoleProposer], body: api.Revise{Payload: a.Payload},
		header: pairs([]string{"If-Match", quotedVersion(a.Version)})}
	send1(t, http.DefaultClient, late.URL, q).refused(action.ExpiredCode)
}

func TestStatements(t *testing.T) {
	e := newEnv(t)
	a, _, _ := e.attempted(stage.SetPrice)
	for lang, done := range map[string]string{"": "done", "?lang=en": "done", "?lang=zh": "完成"} {
		said := into[api.Statement](e.get(people.RoleReader, "/v1/actions/"+a.ID+"/statement"+lang).want(200))
		forbidden, err := json.Marshal(said.MustNotSay)
		if err != nil || said.Level != "unknown" || len(said.MaySay) == 0 || !bytes.Contains(forbidden, []byte(done)) || said.AsOf.IsZero() {
			t.Errorf("%s: %+v", lang, said)
		}
	}
	e.get(people.RoleReader, "/v1/actions/"+a.ID+"/statement?lang=fr").refused(action.InvalidArgument)
}
