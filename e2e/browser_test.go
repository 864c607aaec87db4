package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is one page of a browser in which, at first, nobody is signed in. What
// goes wrong on it fails the test.
type tab struct {
	t      *testing.T
	ctx    context.Context
	url    string
	status int // of the page that is shown
	log    *trouble
}

// trouble is what a browser complains about: violations of the content security
// policy, errors of scripts, dialogs that open.
type trouble struct {
	mu   sync.Mutex
	said []string
}

func (l *trouble) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// A page with a status of refusal is told as an error of the network.
		refused := strings.HasPrefix(e.Entry.Text, "Failed to load resource: the server responded with a status of 4") && !strings.Contains(e.Entry.URL, "/static/")
		if !refused {
			said = fmt.Sprintf("%s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		said = "the page writes to the console"
	case *page.EventJavascriptDialogOpening:
		said = "a dialog opens: " + e.Message
	}
	if said != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.said = append(l.said, said)
	}
}

// take returns what was complained about since the last time.
func (l *trouble) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}

// Sizes of a page, in pixels.
const (
	wide, wideHigh     = 1280, 800
	narrow, narrowHigh = 390, 844
)

// browser opens a browser of one's own: its cookies are nobody else's.
func (c *console) browser(t *testing.T) *tab {
	t.Helper()
	process := orSkip(t, here.browser)
	p := &tab{t: t, url: c.url, log: &trouble{}}
	ctx, cancel := chromedp.NewContext(process, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p.ctx = ctx
	t.Cleanup(func() {
		for _, said := range p.log.take() {
			t.Errorf("the browser complains: %s", said)
		}
	})
	p.do(chromedp.EmulateViewport(wide, wideHigh))
	if err := chromedp.Listen(p.ctx, p.log.hear); err != nil {
		t.Fatal(err)
	}
	send(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return p
}

// within runs something in the browser, and does not wait for ever.
func (p *tab) within(what string, f func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := f(ctx); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	// The first use of a tab must not be bound to a context that ends.
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval evaluates an expression on the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	var v T
	p.within("evaluating "+short(expression[:min(len(expression), 200)]), func(ctx context.Context) (err error) {
		v, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err
	})
	return v
}

// leads runs steps that lead to another page, and waits for it.
func (p *tab) leads(what string, steps ...chromedp.Action[chromedp.Void]) *tab {
	p.t.Helper()
	p.within(what, func(ctx context.Context) error {
		resp, err := chromedp.RunResponse(ctx, steps...)
		if err == nil {
			p.status = int(resp.Status)
		}
		return err
	})
	return p
}

// open opens a page of the console by its address.
func (p *tab) open(path string) *tab {
	p.t.Helper()
	return p.leads("opening "+path, chromedp.Navigate(p.url+path))
}

// follow clicks on what leads to another page.
func (p *tab) follow(selector string) *tab {
	p.t.Helper()
	p.has(selector)
	return p.leads("following "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// followText follows the link in the main part of the page that has this text.
func (p *tab) followText(text string) *tab {
	p.t.Helper()
	path := eval[string](p, `[...document.querySelectorAll("main a")].filter(a => a.innerText.trim() === `+strconv.Quote(text)+`).map(a => a.getAttribute("href"))[0] || ""`)
	if path == "" {
		p.t.Fatalf("%s has no link %q:\n%s", p.path(), text, short(p.text()))
	}
	return p.follow("main a[href=" + strconv.Quote(path) + "]")
}

// click clicks on what does not lead elsewhere.
func (p *tab) click(selector string) *tab {
	p.t.Helper()
	p.has(selector)
	p.within("clicking "+selector, func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector))) })
	return p
}

// fill types into an input, over what is there.
func (p *tab) fill(selector, text string) *tab {
	p.t.Helper()
	p.has(selector)
	eval[any](p, "document.querySelector("+strconv.Quote(selector)+").select()")
	p.within("filling "+selector, func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS(selector), text))
	})
	return p
}

// choose chooses in a list.
func (p *tab) choose(selector, value string) *tab {
	p.t.Helper()
	p.has(selector)
	p.within("choosing "+value, func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.SetValue(chromedp.CSS(selector), value))
	})
	return p
}

// text is what the page shows to its reader.
func (p *tab) text() string { p.t.Helper(); return eval[string](p, "document.body.innerText") }

// says checks that the page shows all of this.
func (p *tab) says(parts ...string) *tab {
	p.t.Helper()
	text := p.text()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.t.Fatalf("%s does not say %q:\n%s", p.path(), part, short(text))
		}
	}
	return p
}

// lacks checks that the page shows none of this.
func (p *tab) lacks(parts ...string) *tab {
	p.t.Helper()
	text := p.text()
	for _, part := range parts {
		if strings.Contains(text, part) {
			p.t.Fatalf("%s says %q:\n%s", p.path(), part, short(text))
		}
	}
	return p
}

// count is how many elements there are.
func (p *tab) count(selector string) int {
	p.t.Helper()
	return eval[int](p, "document.querySelectorAll("+strconv.Quote(selector)+").length")
}

func (p *tab) has(selector string) *tab {
	p.t.Helper()
	if p.count(selector) == 0 {
		p.t.Fatalf("%s has no %s:\n%s", p.path(), selector, short(p.text()))
	}
	return p
}

func (p *tab) hasNo(selector string) *tab {
	p.t.Helper()
	if n := p.count(selector); n > 0 {
		p.t.Fatalf("%s has %d of %s:\n%s", p.path(), n, selector, short(p.text()))
	}
	return p
}

// path is where the browser is.
func (p *tab) path() string {
	p.t.Helper()
	return eval[string](p, "location.pathname + location.search")
}

// want checks that the page that is shown has one of these statuses.
func (p *tab) want(statuses ...int) *tab {
	p.t.Helper()
	if !slices.Contains(statuses, p.status) {
		p.t.Fatalf("%s has status %d, want %d:\n%s", p.path(), p.status, statuses, short(p.text()))
	}
	return p
}

// at checks where the browser is.
func (p *tab) at(path string) *tab {
	p.t.Helper()
	if got := p.path(); got != path && !strings.HasPrefix(got, path+"?") {
		p.t.Fatalf("the browser is at %s, want %s:\n%s", got, path, short(p.text()))
	}
	return p
}

// value is what an input holds.
func (p *tab) value(selector string) string {
	p.t.Helper()
	p.has(selector)
	return eval[string](p, "document.querySelector("+strconv.Quote(selector)+").value")
}

// waits waits until an expression is true on the page.
func (p *tab) waits(what, expression string) *tab {
	p.t.Helper()
	eventually(p.t, what, func() bool { return eval[bool](p, "Boolean("+expression+")") })
	return p
}

// as is a browser in which a new person with a role has signed in with a link.
func (c *console) as(t *testing.T, role string, tools ...string) *tab {
	t.Helper()
	_, link := c.person(t, role, tools...)
	return c.browser(t).enter(link)
}

// enter signs in with a one-time link.
func (p *tab) enter(link string) *tab {
	p.t.Helper()
	return p.open(link).follow("main button").want(200).at("/approvals")
}

// approve approves what the page shows.
func (p *tab) approve() *tab { p.t.Helper(); return p.follow(approveButton) }

const (
	approveButton = `button[name=decision][value=approve]`
	rejectButton  = `button[name=decision][value=reject]`
)

// clickWhere clicks on the place of the screen where an element is, whatever
// stands there.
func (p *tab) clickWhere(selector string) {
	p.t.Helper()
	at := eval[[]float64](p, `(() => { const e = document.querySelector(`+strconv.Quote(selector)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// send gives the browser a command of its protocol.
func send[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	answer, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// evalStep is a script as a step.
func evalStep(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}
