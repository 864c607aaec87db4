package handlers

import (
	"net/url"
	"testing"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/store/stage"
)

// What a pause or an open case holds up says so in the queue and on its page, and
// can be rejected there all the same.
func TestWhatIsHeldUpSaysSoAndCanBeRejected(t *testing.T) {
	e := newEnv(t)
	mia := e.as(e.Mia)
	reject := func(a api.Action) {
		t.Helper()
		page := mia.open("/actions/" + a.ID).want(200).holds(`name="decision" value="reject"`)
		mia.send("/actions/"+a.ID+"/decisions", url.Values{"decision": {"reject"}, "proposal_hash": {a.ProposalHash}, "revision": {"1"},
			"op": {page.op()}, "reason_code": {"not_needed"}}).want(303)
		if got := e.Read(a.ID); got.State != action.Rejected {
			t.Errorf("%s is %s", a.ID, got.State)
		}
	}

	product := stage.Product()
	first := into[api.Action](e.propose(proposal(stage.SetPrice, product, 105)).want(201))
	second := into[api.Action](e.propose(proposal(stage.SetPrice, product, 106)).want(201))
	mia.open("/approvals").lacks("Waiting for a case", "Paused by")
	sent, claim := e.Claim(e.Approve(e.Read(first.ID), e.Mia))
	sent, attempt := e.Start(sent, claim)
	doubt := e.Report(sent, stage.Receipt(attempt, claim, action.Unknown)).CaseID()
	mia.open("/approvals").says("Waiting for a case of this object").lacks("Paused by")
	mia.open("/actions/"+second.ID).says("The target is blocked.", doubt).holds("/triage/" + doubt).lacks(`value="approve"`)
	e.as(e.Admin).open("/actions/" + second.ID).says("The target is blocked.").lacks("/decisions")
	reject(second)

	for kind, value := range map[string]string{approvals.PauseTool: stage.SetPrice, approvals.PauseClient: e.Agent.ID, approvals.PauseScope: "shop"} {
		a := e.proposed(stage.SetPrice)
		end := e.pause(kind, value)
		mia.open("/approvals").says("Paused by Ana Ruiz since").lacks("Waiting for a case")
		mia.open("/actions/"+a.ID).says("Paused:", "Ana Ruiz paused it", "refunds are wrong since noon")
		reject(a)
		end()
	}

	e.Tool(stage.Contract("shop.proved_price", `{ when: "true", role: support, approvals: 1, step_up: true }`, ""))
	proved := e.proposed("shop.proved_price")
	mia.open("/actions/" + proved.ID).says("Prove again who you are.").holds("/account/prove").lacks(`value="approve"`)
	reject(proved)
}
