package handlers

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

// twoSettle is a contract for which two people settle from 100 on, that can be
// asked about and is read back.
const twoSettle = "shop.two_settle"

func ops(e *env) (olga, otto people.Person) {
	e.Tool(stage.Contract(twoSettle, "", `status_query: { tool: shop.operation, max_polls: 1 }
  second_person_when: "payload.new_price >= 100.0"`))
	return e.Person("olga", people.RoleOps), e.Person("otto", people.RoleOps)
}

// seenOn is what every form of a case page sends.
func (a answer) seenOn() url.Values {
	a.t.Helper()
	fields := url.Values{}
	for _, name := range []string{"version", "snapshot_hash"} {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindSubmatch(a.body)
		if m == nil {
			a.t.Fatalf("no form with %s: %s", name, a.text())
		}
		fields.Set(name, string(m[1]))
	}
	return fields
}

func also(fields url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for name, values := range fields {
		out[name] = values
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

func items(page answer) (found []string) {
	for _, m := range regexp.MustCompile(`name="item" value="([^"]+)"`).FindAllSubmatch(page.body, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// From the queue to a settled case: taken, refused without evidence, refused on
// what was not seen, settled by one person and confirmed by another.
func TestSettlingOnPages(t *testing.T) {
	e := newEnv(t)
	olga, otto := ops(e)
	a := e.unknown(twoSettle)
	path := "/triage/" + *a.CaseID
	b := e.as(olga)
	b.open("/actions/" + a.ID).want(200).holds(`href="` + path + `"`)
	b.open("/triage?tab=asking").want(200).holds(path)
	observe := api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.operation", Snapshot: []byte(`{"status":"NOT_FOUND"}`), ObservedAt: a.CreatedAt}
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", observe).want(201)
	b.open("/triage").want(200).holds(path).says("not found")

	page := b.open(path).want(200)
	page.says("Take", "Settle").holds(`action="`+path+`/settlements"`, a.ExecutionKey)
	b.send(path+"/take", page.seenOn()).leads(path)
	page = b.open(path).want(200).says("you have it")

	b.send(path+"/ask", page.seenOn()).leads(path)
	observe.ObservationID = action.NewID("obs")
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", observe).want(201)
	page = b.open(path).want(200).says("asked 2×, last") // the second round goes on counting

	settle := also(page.seenOn(), "verdict", "happened", "evidence_kind", "provider_reference", "note", "asked <b>twice</b>")
	b.send(path+"/settlements", settle).wrong(http.StatusUnprocessableEntity, "evidence_ref").holds("asked &lt;b&gt;twice&lt;/b&gt;")
	settle.Set("evidence_ref", "RF-1")
	observe.ObservationID = action.NewID("obs")
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", observe).want(201)
	b.send(path+"/settlements", settle).want(http.StatusConflict).says("Since you opened it").holds(`value="RF-1"`)
	page = b.open(path)
	b.send(path+"/settlements", also(settle, "version", page.seenOn().Get("version"), "snapshot_hash", page.seenOn().Get("snapshot_hash"))).leads(path)
	if got := e.Read(a.ID); got.State != action.ResultUnknown || got.Case.Pending == nil {
		t.Fatalf("%s, case %+v", got.State, got.Case)
	}
	page = b.open(path).want(200).lacks(`value="confirm"`)
	b.send(path+"/settlements", also(page.seenOn(), "second", "confirm")).want(http.StatusForbidden)

	second := e.as(otto)
	second.open("/triage?tab=second").want(200).holds(path).says("Olga")
	page = second.open(path).want(200).says("waiting for a second person", "settled by Olga, agreed by Otto").holds(`value="confirm"`)
	second.send(path+"/settlements", also(page.seenOn(), "second", "confirm", "note", "seen it too")).leads(path)
	if got := e.Read(a.ID); got.State != action.Applied || got.Case.Verdict.Second.Note != "seen it too" {
		t.Fatalf("%s, case %+v", got.State, got.Case)
	}
	b.open("/triage?tab=settled").want(200).holds(path).says("settled by Olga, agreed by Otto")
	b.open("/actions/" + a.ID).want(200).says("Done, settled by Olga, agreed by Otto")
	b.open(path).want(200).says("Settled", "RF-1", "Done, settled by Olga, agreed by Otto", "Otto agreed, as ops at the time", "Otto agreed with the verdict", "seen it too").lacks(`action="` + path + `/settlements"`)
	b.send(path+"/take", page.seenOn()).want(http.StatusConflict)
}

// Who may not settle sees the case and no form; what is elsewhere they do not see.
func TestCasesForThoseWhoDoNotSettle(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	a := e.unknown(stage.SetPrice)
	path := "/triage/" + *a.CaseID
	seen := e.as(olga).open(path).want(200).seenOn()
	auditor := e.Person("ada", people.RoleAuditor)
	for _, p := range []people.Person{e.Mia, auditor} {
		b := e.as(p)
		b.open("/triage").want(200).holds(path).lacks(`action="/triage/bulk"`)
		b.open(path).want(200).lacks("<fieldset", `action="`+path+`/take"`)
		for _, rest := range []string{"/take", "/hand-over", "/ask", "/retry", "/settlements"} {
			b.send(path+rest, seen).want(http.StatusForbidden)
		}
		b.send("/triage/bulk", formOf("do", "take", "item", "x")).want(http.StatusForbidden)
	}
	elsewhere := e.as(e.PersonWith("eve", people.Grants{Roles: []string{people.RoleOps}, Scopes: []string{"bank"}}))
	elsewhere.open("/triage").want(200).lacks(path)
	elsewhere.open(path).want(http.StatusNotFound)
	elsewhere.send(path+"/take", seen).want(http.StatusNotFound)
	e.as(olga).open("/triage/" + action.NewID("cas")).want(http.StatusNotFound)
	if got := e.Read(a.ID); got.Version != a.Version {
		t.Error("refused, and something was recorded")
	}
}

// The same is sent once more because a person wants it: not before the fence,
// not twice, and by an executor.
func TestSendingAgainOnPages(t *testing.T) {
	e := newEnv(t)
	olga, otto := ops(e)
	a := e.unknown(stage.SetPrice)
	path := "/triage/" + *a.CaseID
	page := e.as(olga).open(path).want(200).says("Send again, same key", "Not yet: what was sent can arrive until").lacks(path + "/retry")
	e.as(olga).send(path+"/retry", page.seenOn()).want(http.StatusConflict).says("Send again after that")
	later := *e
	later.server = e.later(20 * time.Minute)
	b, other := later.as(olga), later.as(otto)
	page = b.open(path).want(200).holds(`action="` + path + `/retry"`).says("does nothing twice")
	b.send(path+"/retry", page.seenOn()).leads(path)
	b.send(path+"/retry", page.seenOn()).leads(path) // the same form again is the same
	other.send(path+"/retry", page.seenOn()).want(http.StatusConflict).says("Something new is known")
	page = other.open(path).want(200).says("An executor sends it as soon as it can", "Olga asked to send it again").lacks(path + "/retry")
	other.send(path+"/retry", page.seenOn()).want(http.StatusConflict).says("about to send it again")
	if got := e.Read(a.ID); got.Work() != action.WorkRetry || e.Count(a.ID, action.KindSendAgain) != 1 {
		t.Errorf("work %q", got.Work())
	}
}

// An amount has its currency's decimals wherever a case shows it, however a
// program or a business system wrote it.
func TestAmountsOnACase(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	e.Tool(stage.Contract("shop.sum", "", `postconditions: [ { read: shop.read_price, field: /price, expect: "value == payload.new_price" } ]`) +
		"display: { money: { /new_price: { currency: EUR, minor_units: 2 } } }\n")
	a := e.unknown("shop.sum")
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice,
		Snapshot: []byte(`{"price": 42}`), ObservedAt: time.Now()}).want(201)
	e.as(olga).open("/triage/"+*a.CaseID).want(200).says("105.00 EUR", "42.00 EUR", "Amount 105.00 EUR")
	e.as(olga).open("/triage?tab=person").want(200).says("105.00 EUR")
	e.Tool(`name: shop.read_end
mode: read
input_schema: { type: object }
target: { type: product, id: /product_id, scope: shop, block: none }
http: { method: GET, path: "/products/{product_id}" }
display: { allow_output: [/ended_at], labels: { /ended_at: Ended at } }
`)
	e.Tool(stage.Contract("shop.end", "", `postconditions: [ { read: shop.read_end, field: /ended_at, expect: "value != null && value != ''" } ]`))
	ended := e.unknown("shop.end")
	e.post(people.RoleExecutor, "/v1/actions/"+ended.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: "shop.read_end",
		Snapshot: []byte(`{"ended_at": null}`), ObservedAt: time.Now()}).want(201)
	e.as(olga).open("/triage/"+*ended.CaseID).want(200).says("Ended at", "anything there", "none").lacks("value != null", "null")
	e.as(olga).open("/overview").want(200).lacks("105.00 EUR") // a price that is set is not money that moves
}

// A reading is chosen from those that the page lists, so that nobody copies hashes;
// it is the only evidence then.
func TestAReadingIsChosenAsEvidence(t *testing.T) {
	e := newEnv(t)
	olga, _ := ops(e)
	a := e.unknown(stage.SetPrice)
	snapshot := []byte(`{"price":105}`)
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: snapshot, ObservedAt: time.Now()}).want(201)
	other := []byte(`{"product_id":"another","price":105}`)
	seen := into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/observations", api.Observation{ObservationID: action.NewID("obs"), Tool: stage.ReadPrice, Snapshot: other, ObservedAt: time.Now()}).want(201))
	if o := seen.Observations; len(o) != 2 || o[0].AboutOther || !o[1].AboutOther {
		t.Errorf("read: %+v", o)
	}
	path, hash := "/triage/"+*a.CaseID, action.ContentHash(e.Read(a.ID).Observations[0].Snapshot)
	b := e.as(olga)
	page := b.open(path).want(200).says("It is about something else than this action").lacks(`<option value="`+action.ContentHash(e.Read(a.ID).Observations[1].Snapshot)).holds(`<option value="`+hash+`">`, `<code class="tok">`+hash+`</code>`)
	settle := also(page.seenOn(), "verdict", "happened", "evidence_reading", hash)
	for _, beside := range [][2]string{{"evidence_kind", "statement"}, {"evidence_ref", "RF-1"}} {
		b.send(path+"/settlements", also(settle, beside[0], beside[1])).wrong(http.StatusUnprocessableEntity, "evidence_reading").holds(`<option value="` + hash + `" selected>`)
	}
	b.send(path+"/settlements", also(settle, "evidence_reading", "sha256:00")).wrong(http.StatusUnprocessableEntity, "evidence_ref")
	b.send(path+"/settlements", settle).leads(path)
	if v := e.Read(a.ID).Case.Verdict; v == nil || v.EvidenceKind != action.EvidenceSnapshot || v.EvidenceRef != hash {
		t.Errorf("verdict %+v", v)
	}
}

// A case is handed over, and a contradiction shows both sides.
func TestHandingOverAndContradictions(t *testing.T) {
	e := newEnv(t)
	olga, otto := ops(e)
	a, claim, attempt := e.attempted(stage.SetPrice)
	a = into[api.Action](e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Unknown)).want(201))
	path := "/triage/" + *a.CaseID
	b := e.as(olga)
	b.send(path+"/take", b.open(path).seenOn()).leads(path)
	page := b.open(path)
	b.send(path+"/hand-over", also(page.seenOn(), "person", e.Mia.ID)).want(http.StatusUnprocessableEntity)
	b.send(path+"/hand-over", also(page.seenOn(), "person", otto.ID)).leads(path)
	b.open(path).want(200).says("Otto has it").lacks("<fieldset")
	now := triage.See(e.Read(a.ID))
	held := formOf("version", fmt.Sprint(now.Version), "snapshot_hash", now.SnapshotHash)
	b.send(path+"/take", held).want(http.StatusConflict).says("Otto")
	b.send(path+"/ask", held).want(http.StatusConflict) // the contract names no query
	second := e.as(otto)
	page = second.open(path)
	second.send(path+"/settlements", also(page.seenOn(), "verdict", "did_not_happen", "evidence_kind", "statement", "evidence_ref", "their desk", "note", "nothing found")).leads(path)
	second.open(path).want(200).says("not closed yet", "nothing found")
	late := e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Success)).want(201)
	if got := into[api.Action](late); got.State != string(action.Applied) {
		t.Fatalf("before the fence a success is taken: %s", got.State)
	}
	e.post(people.RoleExecutor, "/v1/actions/"+a.ID+"/receipts", receipt(attempt, claim, action.Failure)).want(201)
	found := e.Read(a.ID)
	if found.State != action.ResultUnknown || found.CaseID() == *a.CaseID {
		t.Fatalf("%s, case %s", found.State, found.CaseID())
	}
	b.open("/triage/"+found.CaseID()).want(200).says("Two things are recorded", "What was known", "What came later")
	b.open(path).want(200).lacks("Two things are recorded") // the first case stays what it was
}

// Bulk forms and files work on exactly the list that a page showed.
func TestBulkAndImportOnPages(t *testing.T) {
	e := newEnv(t)
	olga, otto := ops(e)
	first, second, third := e.unknown(stage.SetPrice), e.unknown(stage.SetPrice), e.unknown(stage.SetPrice)
	b := e.as(olga)
	page := b.open("/triage").want(200).holds(`action="/triage/bulk"`)
	list := items(page)
	if len(list) != 3 {
		t.Fatalf("the page freezes %q", list)
	}
	e.Cases.Take(t.Context(), triage.Who{ID: otto.ID}, triage.See(e.Read(second.ID))) // moves it on
	b.send("/triage/bulk", url.Values{"do": {"take"}, "item": list}).want(200).says("2 of 3")
	for _, a := range []api.Action{first, third} {
		if h := e.Read(a.ID).Case.Holder; h == nil || h.ID != olga.ID {
			t.Errorf("holder %+v", h)
		}
	}
	b.send("/triage/bulk", url.Values{"do": {"settle"}, "item": list}).want(http.StatusUnprocessableEntity)
	b.send("/triage/bulk", url.Values{"do": {"take"}, "item": {"nonsense"}}).want(http.StatusUnprocessableEntity)

	list = items(b.open("/triage"))
	keys := b.open("/triage/keys?" + url.Values{"item": list}.Encode()).want(200)
	if !strings.HasPrefix(string(keys.body), "\uFEFFkey,outcome") || !strings.Contains(string(keys.body), first.ExecutionKey) {
		t.Errorf("keys %s", keys.body)
	}
	b.open("/triage/import?" + url.Values{"item": list}.Encode()).want(200).holds(`type="file"`)
	file := fmt.Sprintf("key,outcome,reference\n%s,SUCCEEDED,RF-1\n%s,not found,\n", first.ExecutionKey, second.ExecutionKey)
	preview := b.upload("/triage/import", url.Values{"item": list}, file).want(200).says("RF-1", action.ContentHash([]byte(file)))
	if got := e.Read(first.ID); got.State != action.ResultUnknown {
		t.Fatal("the dry run recorded something")
	}
	content := regexp.MustCompile(`name="content" value="([^"]+)"`).FindSubmatch(preview.body)
	if content == nil {
		t.Fatal("the preview does not bring the file back")
	}
	b.upload("/triage/import", url.Values{"item": list, "step": {"confirm"}, "content": {string(content[1])}, "file_name": {"f.csv"}, "note": {"daily"}}, "").want(200)
	if got := e.Read(first.ID); got.State != action.Applied || got.Case.Verdict.EvidenceRef != action.ContentHash([]byte(file)) {
		t.Errorf("%s, %+v", got.State, got.Case.Verdict)
	}
	if got := e.Read(second.ID); got.State != action.ResultUnknown || got.Case.Verdict != nil {
		t.Error("what was not found is settled")
	}
	b.upload("/triage/import", url.Values{"item": list}, "a,b\n").want(http.StatusUnprocessableEntity).says("key")
}

// upload posts a form with a file, or without one when it is empty.
func (b *browser) upload(path string, fields url.Values, file string) answer {
	b.T.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, values := range fields {
		for _, v := range values {
			form.WriteField(name, v)
		}
	}
	if file != "" {
		part, err := form.CreateFormFile("file", "books.csv")
		if err != nil {
			b.T.Fatal(err)
		}
		part.Write([]byte(file))
	}
	form.Close()
	return send1(b.T, b.client, b.server.URL, request{method: post, path: path, body: body.String(), header: map[string]string{
		"Content-Type": form.FormDataContentType(), "Origin": b.server.URL}})
}
