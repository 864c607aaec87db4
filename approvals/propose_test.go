package approvals_test

import (
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
)

// Report 3: whatever is edited, earlier approvals are void.
func TestReport03_AnyEditVoidsEarlierApprovals(t *testing.T) {
	version, other := "v1", "v2"
	for name, edit := range map[string]func(*approvals.Revision){
		"the payload": func(r *approvals.Revision) { r.Payload = []byte(strings.Replace(string(r.Payload), "105", "104", 1)) },
		"a member more": func(r *approvals.Revision) {
			r.Payload = []byte(strings.Replace(string(r.Payload), "{", `{"note":"x",`, 1))
		},
		"the object version": func(r *approvals.Revision) { r.ObjectVersion = &other },
		"no object version":  func(r *approvals.Revision) { r.ObjectVersion = nil },
		"the expiry":         func(r *approvals.Revision) { r.ExpiresIn = stage.Seconds(60) },
		"the reason":         func(r *approvals.Revision) { r.Reason = "another" },
		"nothing at all":     func(*approvals.Revision) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t)
			p := stage.Proposal(stage.BigPrice, stage.Product(), 105)
			p.ObjectVersion = &version
			a := s.Approve(s.Propose(p), s.Mia)
			r := approvals.Revision{Payload: a.Payload, ObjectVersion: a.ObjectVersion, Reason: a.Reason}
			edit(&r)
			snap, err := s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, r)
			if err != nil {
				t.Fatal(err)
			}
			b := snap.Action
			if b.Revision != a.Revision+1 || b.ProposalHash == a.ProposalHash || b.ExecutionKey != a.ExecutionKey {
				t.Errorf("revision %d → %d, same hash %v", a.Revision, b.Revision, b.ProposalHash == a.ProposalHash)
			}
			if b = s.Approve(b, s.Ken); b.State != action.Proposed {
				t.Fatalf("an approval of another revision made it %s", b.State)
			}
			if b = s.Approve(b, s.Mia); b.State != action.Confirmed || b.Confirmation.Revision != b.Revision {
				t.Errorf("%s after both approved the new revision", b.State)
			}
		})
	}
}

// Report 5: what two readers could understand differently is refused.
func TestReport05_AmbiguousPayloadsAreRefused(t *testing.T) {
	refusesPayloads(t, map[string]payload{
		"duplicate member":         {`{"product_id":"p","new_price":1,"new_price":2}`, "/payload/new_price"},
		"duplicate member, nested": {`{"product_id":"p","x":{"a":1,"a":1}}`, "/payload/x/a"},
		"duplicate by escape":      {`{"product_id":"p","\u0070roduct_id":"q"}`, "/payload/product_id"},
		"lone surrogate":           {`{"product_id":"p\ud800"}`, "/payload/product_id"},
		"invalid UTF-8":            {"{\"product_id\":\"p\xff\"}", "/payload/product_id"},
		"no object":                {`[1]`, "/payload"},
		"nothing":                  {``, "/payload"},
	})
}

// Report 6: a number that would become another is refused.
func TestReport06_NumbersThatWouldChangeAreRefused(t *testing.T) {
	refusesPayloads(t, map[string]payload{
		"integer over 2^53": {`{"product_id":"p","new_price":9007199254740993}`, "/payload/new_price"},
		"account number":    {`{"product_id":"p","x":12345678901234567890}`, "/payload/x"},
		"no finite double":  {`{"product_id":"p","new_price":1e400}`, "/payload/new_price"},
		"too many digits":   {`{"product_id":"p","new_price":0.12345678901234567891}`, "/payload/new_price"},
	})
}

// payload is a bad one, and the place that a refusal has to name.
type payload struct{ text, pointer string }

func refusesPayloads(t *testing.T, cases map[string]payload) {
	t.Helper()
	s := set(t)
	for name, c := range cases {
		p := stage.Proposal(stage.SetPrice, "p", 1)
		p.Payload = []byte(c.text)
		_, _, err := s.Approvals.Propose(background(), s.Agent, p)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		r := action.AsRefusal(err)
		if r.Code != action.InvalidPayload && r.Code != action.Malformed && r.Code != action.InvalidArgument {
			t.Errorf("%s: refused with %v", name, err)
		}
		if len(r.Errors) == 0 || r.Errors[0].Pointer != c.pointer {
			t.Errorf("%s: names %v, not %s", name, r.Errors, c.pointer)
		}
		if id, err := s.DB.Find(background(), "propose:"+s.Agent.ID+":"+p.Key); id != "" || err != nil {
			t.Errorf("%s: a refusal left %s, %v", name, id, err)
		}
	}
}

// Report 7: the same content has the same hash, however it is written.
func TestReport07_KeyOrderAndSpellingDoNotChangeTheHash(t *testing.T) {
	s := set(t)
	p := stage.Proposal(stage.SetPrice, "", 0)
	p.Payload = []byte(`{"product_id":"sku-é","new_price":105}`)
	a := s.Propose(p)
	for _, text := range []string{
		`{"new_price":105,"product_id":"sku-é"}`,
		"{\n  \"new_price\": 1.05e2,\n  \"product_id\": \"sku-\\u00e9\" }",
		`{"new_price":105.0,"product_id":"sku-é"}`,
	} {
		p.Payload = []byte(text)
		snap, replayed, err := s.Approvals.Propose(background(), s.Agent, p)
		if err != nil || !replayed || snap.Action.ID != a.ID {
			t.Errorf("%s: %s, replayed %v, %v", text, snap.Action.ID, replayed, err)
		}
		q := p
		q.Key = action.NewID("key")
		_, _, err = s.Approvals.Propose(background(), s.Agent, q)
		if r := s.Refused(err, action.DuplicateOpenAction); r.Args["action"] != a.ID {
			t.Errorf("%s: duplicate of %q", text, r.Args["action"])
		}
	}
	p.Payload, p.Key = []byte(`{"product_id":"sku-e\u0301","new_price":105}`), action.NewID("key")
	if b := s.Propose(p); b.PayloadHash == a.PayloadHash {
		t.Error("text that is written differently has one hash")
	}
}

// Report 17: a looping agent gets one open action, and is told which.
func TestReport17_TheSameContentIsOpenOnce(t *testing.T) {
	s := set(t)
	product := stage.Product()
	ids, errs := make([]string, 32), make([]error, 32)
	atOnce(32, func(i int) {
		snap, _, err := s.Approvals.Propose(background(), s.Agent, stage.Proposal(stage.SetPrice, product, 105))
		ids[i], errs[i] = snap.Action.ID, err
	})
	made := ""
	for i, err := range errs {
		if err == nil && made != "" {
			t.Fatalf("%s and %s are open", made, ids[i])
		} else if err == nil {
			made = ids[i]
		}
	}
	if made == "" {
		t.Fatalf("nothing was made: %v", errs[0])
	}
	for _, err := range errs {
		if err == nil {
			continue
		}
		if r := s.Refused(err, action.DuplicateOpenAction); r.Args["action"] != made {
			t.Fatalf("told that %q is open, not %q", r.Args["action"], made)
		}
	}
	// Another payload, actor or tool is something else; so is the same once it is over.
	other := stage.Proposal(stage.SetPrice, product, 105)
	other.Actor.ID = "u-18"
	s.Propose(other)
	s.Propose(stage.Proposal(stage.SetPrice, product, 106))
	s.Propose(stage.Proposal(stage.BigPrice, product, 105))
	if _, err := s.Approvals.Cancel(background(), s.Agent, made, 1, ""); err != nil {
		t.Fatal(err)
	}
	again := s.Propose(stage.Proposal(stage.SetPrice, product, 105))
	if again.ExecutionKey == s.Read(made).ExecutionKey {
		t.Error("a new action has an old action's execution key")
	}
}

func TestOneKeyMakesOneAction(t *testing.T) {
	s := set(t)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	ids, replays, errs := make([]string, 20), make([]bool, 20), make([]error, 20)
	atOnce(20, func(i int) {
		snap, replayed, err := s.Approvals.Propose(background(), s.Agent, p)
		ids[i], replays[i], errs[i] = snap.Action.ID, replayed, err
	})
	first := 0
	for i := range ids {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Fatalf("%s and %s, %v", ids[0], ids[i], errs[i])
		}
		if !replays[i] {
			first++
		}
	}
	if first != 1 || s.Read(ids[0]).Version != 1 {
		t.Errorf("%d answers say that they made it, %v", first, s.Kinds(ids[0]))
	}

	// The key means this request, now and after everything else.
	for name, edit := range map[string]func(*approvals.Proposal){
		"payload": func(p *approvals.Proposal) { p.Payload = []byte(`{"product_id":"x","new_price":1}`) },
		"tool":    func(p *approvals.Proposal) { p.Tool = stage.BigPrice },
		"actor":   func(p *approvals.Proposal) { p.Actor.ID = "u-18" },
		"version": func(p *approvals.Proposal) { p.ObjectVersion = new(string) },
		"expiry":  func(p *approvals.Proposal) { p.ExpiresIn = stage.Seconds(9) },
		"draft":   func(p *approvals.Proposal) { p.Draft = true },
		"no tool": func(p *approvals.Proposal) { p.Tool = "none" },
		"broken":  func(p *approvals.Proposal) { p.Payload = []byte(`{"new_price":1}`) },
	} {
		q := p
		edit(&q)
		_, _, err := s.Approvals.Propose(background(), s.Agent, q)
		if !action.IsCode(err, action.IdempotencyKeyReused) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	a := s.Read(ids[0])
	if _, err := s.Approvals.Cancel(background(), s.Agent, a.ID, a.Version, ""); err != nil {
		t.Fatal(err)
	}
	if snap, replayed, err := s.Approvals.Propose(background(), s.Agent, p); err != nil || !replayed || snap.Action.State != action.Cancelled {
		t.Errorf("the key of a cancelled action answers %s, %v, %v", snap.Action.State, replayed, err)
	}
	other := s.Client("other", s.Admin, people.RoleProposer)
	if snap, replayed, err := s.Approvals.Propose(background(), other, p); err != nil || replayed || snap.Action.ID == a.ID {
		t.Errorf("another client's key answers %s, %v, %v", snap.Action.ID, replayed, err)
	}
}

// A1: request, authorization and result are three records.
func TestA1_ProposalConfirmationAndReceiptAreThreeRecords(t *testing.T) {
	s := set(t)
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	if a.Confirmation != nil || len(a.Receipts) != 0 || a.State != action.Proposed {
		t.Fatalf("a proposal stands for more: %+v", a)
	}
	for name, ref := range map[string]string{"action id": a.ID, "proposal hash": a.ProposalHash, "execution key": a.ExecutionKey} {
		_, err := s.Approvals.Claim(background(), s.Executor, ref, action.NewID("clm"), stage.Bound(a))
		if !action.IsCode(err, action.NotFound) {
			t.Errorf("the %s stands for a confirmation: %v", name, err)
		}
	}
	_, _, err := s.Triage.Start(background(), s.Executor, a.ID, stage.Attempt(action.NewID("clm")))
	s.Refused(err, action.LeaseLost)
	a = s.Approve(a, s.Mia)
	if level, _ := a.Statement(time.Now()); a.Confirmation == nil || len(a.Receipts) != 0 || level != action.LevelNotSubmitted {
		t.Fatalf("an approval stands for a result: %+v", a)
	}
	r := stage.Receipt(action.NewID("att"), action.NewID("clm"), action.Success)
	_, err = s.Triage.Report(background(), s.Executor, a.ID, r)
	s.Refused(err, action.NotFound)
	a, claim := s.Claim(a)
	a, attempt := s.Start(a, claim)
	if level, _ := a.Statement(time.Now()); len(a.Receipts) != 0 || level != action.LevelUnknown {
		t.Fatalf("a request that left stands for its result: %s", level)
	}
	a = s.Report(a, stage.Receipt(attempt, claim, action.Success))
	if a.State != action.Applied || len(a.Receipts) != 1 {
		t.Errorf("%s with %d receipts", a.State, len(a.Receipts))
	}
	want := []action.Kind{action.KindProposed, action.KindDecided, action.KindClaimed, action.KindAttempted, action.KindReceipt}
	if got := s.Kinds(a.ID); strings.Join(words(got), " ") != strings.Join(words(want), " ") {
		t.Errorf("recorded %v", got)
	}
}

func words(kinds []action.Kind) []string {
	text := make([]string, len(kinds))
	for i, k := range kinds {
		text[i] = string(k)
	}
	return text
}

// C3: an approval is bound to actor, conversation, body, action and expiry.
func TestC3_AnotherBodyNeedsAnotherApproval(t *testing.T) {
	s := set(t)
	s.Tool(`name: chat.send
mode: write
input_schema:
  type: object
  required: [conversation_id, body]
  properties: { conversation_id: { type: string }, body: { type: string } }
validate: [ "size(bytes(payload.body)) <= 6" ]
target: { type: conversation, id: /conversation_id, scope: chat }
http: { method: POST, path: "/conversations/{conversation_id}/messages" }
`)
	p := approvals.Proposal{Key: "k1", Tool: "chat.send", Actor: action.Actor{ID: "u-1"}, Payload: []byte(`{"conversation_id":"c-1","body":"公告"}`)}
	a := s.Propose(p)
	longer := approvals.Revision{Payload: []byte(`{"conversation_id":"c-1","body":"公告9"}`)}
	_, err := s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, longer)
	s.Refused(err, action.InvalidPayload)
	_, err = s.Approvals.Revise(background(), s.Agent, a.ID, a.Version, approvals.Revision{Payload: []byte(`{"conversation_id":"c-2","body":"公告"}`)})
	s.Refused(err, action.InvalidArgument)

	s.Tool(`name: chat.note
mode: write
input_schema: { type: object }
target: { type: conversation, id: /conversation_id, scope: chat }
http: { method: POST, path: "/conversations/{conversation_id}/notes" }
`)
	p.Tool, p.Key = "chat.note", "k2"
	b := s.Propose(p)
	shown := stage.Ballot(b)
	snap, err := s.Approvals.Revise(background(), s.Agent, b.ID, b.Version, longer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Approvals.Decide(background(), s.Mia.ID, b.ID, shown)
	s.Refused(err, action.StaleRevision)
	c := s.Approve(snap.Action, s.Mia)
	_, err = s.Approvals.Claim(background(), s.Executor, c.Confirmation.Ref, action.NewID("clm"), stage.Bound(b))
	s.Refused(err, action.StaleRevision)
	if got, _ := s.Claim(c); string(got.Payload) != `{"body":"公告9","conversation_id":"c-1"}` {
		t.Errorf("claimed %s", got.Payload)
	}
}

// A program changes what it proposed itself. Otherwise somebody's own program
// could write what they then approve under another's name.
func TestReport11_OnlyItsProposerChangesAProposal(t *testing.T) {
	s := set(t)
	own := s.ClientWith("mia's agent", s.Mia, people.ClientGrants{Roles: []string{people.RoleProposer, people.RoleReader}})
	a := s.Propose(stage.Proposal(stage.SetPrice, stage.Product(), 105))
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.Draft = true
	d := s.Propose(p)
	_, err := s.Approvals.Revise(background(), own, a.ID, a.Version, approvals.Revision{Payload: cheaper(a)})
	s.Refused(err, action.Forbidden, "proposer")
	_, err = s.Approvals.Cancel(background(), own, a.ID, a.Version, "")
	s.Refused(err, action.Forbidden, "proposer")
	_, err = s.Approvals.Submit(background(), own, d.ID, d.Version)
	s.Refused(err, action.Forbidden, "proposer")
	stranger := s.Client("stranger", s.Admin, people.RoleProposer)
	_, err = s.Approvals.Cancel(background(), stranger, a.ID, a.Version, "")
	s.Refused(err, action.NotFound)
	if got := s.Read(a.ID); got.Version != 1 {
		t.Errorf("refusals left events: %v", s.Kinds(a.ID))
	}
	s.Approve(a, s.Mia)
}

// Repeating a submission answers the same, whatever the contract says by now.
func TestASubmissionIsRepeatedAfterItsToolIsGone(t *testing.T) {
	s := set(t)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.Draft = true
	a := s.Propose(p)
	first, err := s.Approvals.Submit(background(), s.Agent, a.ID, a.Version)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Approvals.Retire(background(), stage.SetPrice, approvals.KeepOpen, action.By{Kind: action.BySystem}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Approvals.Submit(background(), s.Agent, a.ID, a.Version)
	if err != nil || again.Action.Version != first.Action.Version || again.Action.ProposalHash != first.Action.ProposalHash {
		t.Errorf("repeated: version %d, %v", again.Action.Version, err)
	}
}
