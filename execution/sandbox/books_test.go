package sandbox_test

import (
	"fmt"
	"net/http"
	"testing"
)

const (
	explained = `{"reconciliation_id":"REC-2026-09","explanations":[
		{"reference":"10084","voucher":"PSP-70015","text":"the provider kept a scheme fee of 3.00"},
		{"reference":"10087","voucher":"GL-88007","text":"paid under PAY-3302"},
		{"reference":"PAY-3302","voucher":"PSP-70016","text":"order 10087, the provider named no order"}]}`
	fee10084 = `{"reconciliation_id":"REC-2026-09","reference":"10084","amount":-3,"text":"scheme fee of September"}`
)

// Both sides on one scale: items of an order are one line, yuan and yen are
// euros, and the day is that of UTC on either side. Nothing is matched because
// the amounts are alike.
func TestB4_BothSidesOnOneScale(t *testing.T) {
	s := open(t)
	r := s.get("/ledger/reconciliations/REC-2026-09/comparison")
	r.want(t, http.StatusOK)
	r.wantField(t, "matched", 4.0)
	r.wantField(t, "differences", 3.0)
	r.wantField(t, "unexplained", 3.0)
	var got []string
	for _, l := range r.body["lines"].([]any) {
		l := l.(map[string]any)
		got = append(got, fmt.Sprint(l["reference"], " ", l["class"], " ", l["books"], " ", l["statement"], " ", l["difference"], " ", l["books_entries"], "/", l["statement_entries"]))
	}
	want := []string{
		"10084 differs 167.9 164.9 -3 1/1", "10087 books_only 42 <nil> -42 1/0", "PAY-3302 statement_only <nil> 42 42 0/1",
		"10070 matched 149 149 0 2/1", "10074 matched 128.5 128.5 0 1/1", "10077 matched 24.9 24.9 0 1/1", "10091 matched 93.4 93.4 0 1/1",
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("compared\n%q, want\n%q", got, want)
	}
	s.get("/ledger/reconciliations/REC-2026-08/comparison").wantField(t, "matched", 1.0) // on the first of September only in Shanghai
}

// The ledger keeps no keys. What it refuses it refuses by right, by version, by
// what it knows of the object.
func TestB4_TheLedgerRefusesByWhatItKnows(t *testing.T) {
	s := open(t)
	const one = "/ledger/reconciliations/REC-2026-09"
	sign := func(body string, headers ...string) reply { return s.post(one+"/sign_off", "same", body, headers...) }
	post := func(body string, headers ...string) reply {
		return s.post(one+"/adjustments", "same", body, headers...)
	}
	const ingrid, pavel = "u-ingrid-holm", "u-pavel-dvorak"

	post(fee10084, "X-Actor", pavel).wantCode(t, http.StatusUnprocessableEntity, "not-signed-off")
	sign(explained, "X-Actor", pavel).wantCode(t, http.StatusUnprocessableEntity, "no-right")
	sign(explained, "If-Match", `"7"`).wantCode(t, http.StatusPreconditionFailed, "version-moved")
	sign(`{"reconciliation_id":"REC-2026-09","explanations":[]}`).wantCode(t, http.StatusUnprocessableEntity, "unexplained")
	sign(`{"reconciliation_id":"REC-2026-09","explanations":[{"reference":"10084","voucher":"GL-88007","text":"x"}]}`).
		wantCode(t, http.StatusUnprocessableEntity, "voucher-of-something-else")
	sign(`{"reconciliation_id":"REC-2026-09","explanations":[{"reference":"10070","voucher":"GL-88001","text":"x"}]}`).
		wantCode(t, http.StatusUnprocessableEntity, "no-difference")
	s.get(one).wantField(t, "version", 1.0)
	s.get(one+"/comparison").wantField(t, "unexplained", 3.0)

	s.post(one+"/reports", "same", `{"reconciliation_id":"REC-2026-09","report_id":"R1"}`, "X-Actor", ingrid).wantField(t, "signed_off", false)
	sign(explained, "If-Match", `"1"`, "X-Actor", ingrid).want(t, http.StatusOK)
	sign(explained).wantCode(t, http.StatusUnprocessableEntity, "signed-off")
	signed := s.get(one)
	signed.wantField(t, "signed_by", ingrid)
	signed.wantField(t, "adjustments", 0.0) // a signature posts nothing
	s.post(one+"/reports", "same", `{"reconciliation_id":"REC-2026-09","report_id":"R1"}`).wantCode(t, http.StatusConflict, "report-exists")
	s.get(one+"/reports/R1").wantField(t, "signed_off", false) // as it was made

	post(fee10084, "X-Actor", ingrid).wantCode(t, http.StatusUnprocessableEntity, "no-right")
	post(`{"reconciliation_id":"REC-2026-09","reference":"10084","amount":3,"text":"x"}`).wantCode(t, http.StatusUnprocessableEntity, "other-difference")
	post(fee10084, header, "record-only").want(t, http.StatusOK)
	s.get(one+"/adjustments?reference=10084").wantField(t, "found", false)
	post(fee10084, "If-Match", `"2"`, "X-Actor", pavel).want(t, http.StatusOK)
	post(fee10084).wantCode(t, http.StatusConflict, "already-posted")
	s.get(one+"/adjustments?reference=10084").wantField(t, "amount", -3.0)
	s.get(one+"/comparison").wantField(t, "differences", 2.0)
	s.get("/ledger/vouchers/ADJ-REC-2026-09-10084").wantField(t, "side", "books")
	s.control(http.MethodPut, "/ledger/people/"+pavel, `{"rights":["sign_off"]}`)
	s.get("/ledger/people/"+pavel+"/rights/post").wantField(t, "allowed", false)
}
