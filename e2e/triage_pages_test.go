package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"countersign/execution/api"

	"github.com/chromedp/chromedp"
)

// setCases makes cases in every condition there is to look at.
func (s *scene) setCases(t *testing.T) {
	t.Helper()
	c := s.console
	s.desk = c.desk(t, `{"second_person_when":"payload.amount > 200.0"}`)
	_, s.ops = c.person(t, "ops", s.desk)
	_, s.opsChinese = c.person(t, "ops", s.desk)
	other := c.as(t, "ops", s.desk)
	s.cases = map[string]api.Action{"one": c.unsaid(t, s.desk, 42), "two": c.unsaid(t, s.desk, 1860), "held": c.unsaid(t, s.desk, 95),
		"second": c.unsaid(t, s.desk, 240)}
	other.open(caseOf(s.cases["held"])).follow(`form[action$="/take"] button`)
	other.open(caseOf(s.cases["second"])).settle("did_not_happen", "TICKET-4471", "Their desk finds nothing under the key.")
	a := c.refund(t, s.desk, 42, "CNY")
	sent := c.sent(t, a.ID)
	settled := c.report(t, a.ID, sent, noAnswer)
	other.open(caseOf(settled)).settle("happened", "RF-1", hostile)
	s.cases["settled"] = settled
	s.cases["contradiction"] = c.report(t, a.ID, sent, api.Receipt{Outcome: "FAILURE", HTTPStatus: 422})
}

func (s *scene) ofCase(name string) string { return caseOf(s.cases[name]) }

// operators are the pages of who settles unknown results.
func (s *scene) operators() []shown {
	queue := "/triage?tool=" + s.desk
	pages := []shown{at("triage", "/triage"), at("triage-second", queue+"&tab=second"), at("triage-settled", queue+"&tab=settled"),
		at("triage-none", "/triage?q=exk_nothing"), at("callbacks", "/triage/callbacks"), at("pauses", "/pauses")}
	for _, name := range []string{"one", "held", "second", "settled", "contradiction"} {
		pages = append(pages, at("case-"+name, s.ofCase(name)))
	}
	return append(pages,
		refusal("settle-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open(s.ofCase("one")).settle("happened", " ", "On the phone.")
		}),
		shown{"import", http.StatusOK, func(p *tab) { p.open(queue).follow(`.bulk button[formaction="/triage/import"]`) }},
		shown{"import-preview", http.StatusOK, func(p *tab) {
			file := filepath.Join(p.t.TempDir(), "payhub.csv")
			text := fmt.Sprintf("key,outcome,reference,amount\n%s,SUCCEEDED,RF-1,42.00\n%s,perhaps,RF-2,43\nexk_nobodys,FAILED,,\n",
				s.cases["one"].ExecutionKey, s.cases["two"].ExecutionKey)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				p.t.Fatal(err)
			}
			p.within("choosing a file", func(ctx context.Context) error {
				return chromedp.Do(ctx, chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
			})
			p.follow("main form button")
		}},
		refusal("import-wrong", http.StatusUnprocessableEntity, func(p *tab) {
			p.open(queue).follow(`.bulk button[formaction="/triage/import"]`)
			p.leads("sending no file", evalStep(`document.querySelector("#file").form.submit()`))
		}),
		shown{"bulk", http.StatusOK, func(p *tab) { p.open(queue).follow(".bulk button[value=take]") }},
	)
}

// operatorsChinese are pages of unknown results in the other language.
func (s *scene) operatorsChinese() []shown {
	pages := []shown{{"triage-chinese", http.StatusOK, func(p *tab) { p.open("/triage").follow(".switch button") }}}
	for _, name := range []string{"second", "contradiction"} {
		pages = append(pages, at("case-"+name+"-chinese", s.ofCase(name)))
	}
	return pages
}
