package handlers

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/approvals"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"

	xhtml "golang.org/x/net/html"
)

// company is a demo's company in which nothing happens.
type company struct{}

func (company) Steps(context.Context) ([]DemoStep, error) {
	return []DemoStep{{Name: "stale", Turns: true}, {Name: "timeout"}}, nil
}
func (company) Play(context.Context, string, bool, string) (string, error) { return "", nil }
func (company) Faults(context.Context) ([]DemoFault, error) {
	return []DemoFault{{System: "shop", Kind: "timeout", Left: 1}}, nil
}
func (company) Break(context.Context, DemoFault, string) error { return nil }
func (company) Mend(context.Context) error                     { return nil }
func (company) Try(context.Context, DemoTrial) (string, []string, error) {
	return "", nil, nil
}

// Whoever sees a form, or a link that looks like a button, may use it; and every
// form that changes something sends an op, so that a second click changes nothing.
func TestWhatIsOfferedIsAllowedAndTakesEffectOnce(t *testing.T) {
	e := newEnv(t)
	e.server, e.inner = e.openWith(e.Console, company{})
	olga, _ := ops(e)
	unknown, held, task, run := e.unknown(twoSettle), e.unknown(twoSettle), e.task(api.TaskLimits{Writes: new(1)}), e.run()
	waiting, _, _ := e.proposed(stage.SetPrice), e.unknown(stage.SetPrice), e.unknown(stage.SetPrice)
	defer e.pause(approvals.PauseTool, "shop.small")()
	paused, err := e.DB.Pauses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string][]string{"{id}": {waiting.ID, unknown.ID}, "{case}": {*unknown.CaseID}, "{task}": {task.ID}, "{run}": {run.ID}, "{pause}": {paused[0].ID},
		"{name}": {stage.SetPrice}, "{person}": {e.Mia.ID}, "{client}": {e.Agent.ID}}
	all := slices.Concat(routes(), demoRoutes())
	viewers := map[string]people.Person{people.RoleSupport: e.Mia, people.RoleOps: olga, people.RoleAuditor: e.Person("otis", people.RoleAuditor), people.RoleAdmin: e.Admin}
	offered := map[string]bool{}
	for role, viewer := range viewers {
		b := e.as(viewer)
		pages := pagesOf(all, addresses)
		if role == people.RoleOps { // whoever holds a case is offered more
			pages = append(pages, "/triage/"+*held.CaseID)
			fields := b.open("/triage/" + *held.CaseID).seenOn()
			fields.Set("op", newOp())
			b.send("/triage/"+*held.CaseID+"/take", fields).want(http.StatusSeeOther)
		}
		for _, address := range pages {
			page := b.open(address)
			if page.status == http.StatusForbidden || page.status == http.StatusSeeOther {
				continue
			}
			for _, o := range offers(t, address, page.want(http.StatusOK)) {
				rt, found := routeOf(all, o.method, o.path)
				switch {
				case !found:
					t.Errorf("%s offers %s %s, which is nowhere", address, o.method, o.path)
				case len(rt.who.persons) > 0 && !slices.ContainsFunc(rt.who.persons, viewer.Has):
					t.Errorf("%s offers %s to %s, who may not", address, rt.name, role)
				case o.method == post && !o.op && !slices.Contains([]string{"signOut", "language", "prove", "review"}, rt.name): // which can be repeated as they are
					t.Errorf("%s: the form of %s has no op", address, rt.name)
				}
				if o.method == post {
					offered[rt.name] = true
				}
			}
		}
	}
	for _, rt := range all { // what stands only on pages that are reached by posting, or with rows that are not here
		elsewhere := []string{"signIn", "link", "review", "revokeKey", "caseHandOver", "caseAsk", "caseSendAgain", "explain", "accountSession", "accountSessions", "enablePerson"}
		if rt.page() && rt.method == post && !offered[rt.name] && !slices.Contains(elsewhere, rt.name) {
			t.Errorf("no page offers %s", rt.name)
		}
	}
}

// pagesOf are the addresses of the pages that people get.
func pagesOf(all []route, ids map[string][]string) []string {
	var found []string
	for _, rt := range all {
		if rt.method != get || !rt.page() || !rt.who.signedIn || rt.holds != 0 || strings.Contains(rt.pattern, ".") || strings.HasSuffix(rt.pattern, "/payload") {
			continue
		}
		addresses := []string{rt.pattern}
		for name, values := range ids {
			if strings.Contains(rt.pattern, name) {
				addresses = nil
				for _, v := range values {
					addresses = append(addresses, strings.Replace(rt.pattern, name, v, 1))
				}
			}
		}
		found = append(found, addresses...)
	}
	return append(found, "/approvals?tab=all")
}

// offer is a form of a page, or a link that looks like a button.
type offer struct {
	method, path string
	op           bool
}

// offers lists what a page offers to do.
func offers(t *testing.T, address string, page answer) []offer {
	t.Helper()
	root, err := xhtml.Parse(bytes.NewReader(page.body))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var found []offer
	add := func(method, to string, op bool) {
		if u, err := at.Parse(to); err == nil && !strings.HasPrefix(to, "#") && u.Host == "" {
			found = append(found, offer{method, u.Path, op})
		}
	}
	for n := range root.Descendants() {
		switch {
		case n.Type != xhtml.ElementNode:
		case n.Data == "a" && slices.Contains(strings.Fields(attrOf(n, "class")), "button"):
			add(get, attrOf(n, "href"), true)
		case n.Data == "form" && strings.EqualFold(attrOf(n, "method"), post):
			op := false
			for c := range n.Descendants() {
				op = op || c.Type == xhtml.ElementNode && c.Data == "input" && attrOf(c, "name") == "op" && attrOf(c, "value") != ""
				if to := attrOf(c, "formaction"); to != "" {
					add(strings.ToUpper(cmp.Or(attrOf(c, "formmethod"), post)), to, op)
				}
			}
			add(post, attrOf(n, "action"), op)
		}
	}
	return found
}

func attrOf(n *xhtml.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

var placeholder = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// routeOf is the route that an address leads to: the one with the fewest
// placeholders that fits.
func routeOf(all []route, method, path string) (route, bool) {
	var found route
	most := -1
	for _, rt := range all {
		pattern := regexp.MustCompile("^" + placeholder.ReplaceAllString(regexp.QuoteMeta(rt.pattern), `[^/]+`) + "$")
		if literal := len(placeholder.ReplaceAllString(regexp.QuoteMeta(rt.pattern), "")); rt.method == method && pattern.MatchString(path) && literal > most {
			found, most = rt, literal
		}
	}
	return found, most >= 0
}
