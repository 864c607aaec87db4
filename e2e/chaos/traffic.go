//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

const (
	orders    = "CH"  // before the numbers of the orders here
	orderPaid = 900   // in EUR, enough to see a second and a third refund
	proposers = 12    // at a time
	dear      = 250.0 // needs two people; anything else is cheap and needs one
	cheap     = 10.0
)

func orderID(i int) string { return fmt.Sprintf("%s-%06d", orders, i+1) }

// amountOf is what is refunded on an order: every tenth is dear.
func amountOf(i int) float64 {
	if i%10 == 9 {
		return dear
	}
	return cheap
}

// refund is one that the console said it has.
type refund struct {
	order  string
	amount float64
	id     string
	key    string // execution key
}

// traffic proposes a refund for every order and has it approved.
func (s *stack) traffic(ctx context.Context, say func(string, ...any)) ([]refund, error) {
	known := make([]refund, s.refunds)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var under sync.WaitGroup
	for range proposers {
		under.Go(func() {
			for i := int(next.Add(1)) - 1; i < s.refunds && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r, err := s.one(ctx, i)
				if err != nil {
					cancel(err)
					return
				}
				known[i] = r
				if n := done.Add(1); n%2000 == 0 {
					say("%d proposed and approved", n)
				}
			}
		})
	}
	under.Wait()
	return known, context.Cause(ctx)
}

// one proposes one refund and has it approved, however often it takes.
func (s *stack) one(ctx context.Context, i int) (refund, error) {
	r := refund{order: orderID(i), amount: amountOf(i)}
	payload := fmt.Appendf(nil, `{"order_id":%q,"amount":%v,"reason":"arrived broken"}`, r.order, r.amount)
	p := api.Propose{Tool: tool, Actor: &api.Actor{ID: "u-li-na"}, Payload: json.RawMessage(payload), Entry: "chat"}
	a, err := again(ctx, func() (api.Action, error) { return s.proposer.Propose(ctx, p, "chaos-"+r.order) })
	if err != nil {
		return r, fmt.Errorf("proposing %s: %w", r.order, err)
	}
	r.id, r.key = a.ID, a.ExecutionKey
	needed := 1
	if r.amount == dear {
		needed = 2
	}
	for j := range needed {
		who := s.approvers[(i+j)%len(s.approvers)]
		if _, err := again(ctx, func() (bool, error) { return true, who.approve(ctx, a) }); err != nil {
			return r, fmt.Errorf("approving %s: %w", r.order, err)
		}
	}
	return r, nil
}

// again repeats what failed because something is down right now. Refusals
// are final.
func again[T any](ctx context.Context, try func() (T, error)) (T, error) {
	deadline := time.Now().Add(patience)
	for {
		v, err := try()
		if p, ok := execution.AsProblem(err); err == nil || ok && !p.Unsettled() && !p.Has(action.RateLimited) {
			return v, err
		}
		if time.Now().After(deadline) || pause(ctx, 200*time.Millisecond) != nil {
			return v, err
		}
	}
}

// approver is a person who decides on the page, as a browser does.
type approver struct {
	console, name, password string

	mu   sync.Mutex
	http *http.Client // with a session; nil: not signed in
}

// approve sends the form of the action's page.
func (p *approver) approve(ctx context.Context, a api.Action) error {
	browser, err := p.signedIn(ctx)
	if err != nil {
		return err
	}
	status, where, text, err := p.post(ctx, browser, "/actions/"+a.ID+"/decisions", url.Values{
		"decision": {"approve"}, "proposal_hash": {a.ProposalHash}, "revision": {strconv.Itoa(a.Revision)}})
	switch {
	case err != nil:
		return err
	case status == http.StatusSeeOther && !strings.HasPrefix(where, "/login"):
		return nil
	case status == http.StatusSeeOther || status == http.StatusUnauthorized:
		p.forget(browser)
	}
	return fmt.Errorf("the decision of %s on %s is answered %d %s: %s", p.name, a.ID, status, where, text)
}

func (p *approver) forget(session *http.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http == session {
		p.http = nil
	}
}

func (p *approver) signedIn(ctx context.Context) (*http.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http != nil {
		return p.http, nil
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Jar: jar, Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: proposers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	status, _, text, err := p.post(ctx, browser, "/login", url.Values{"username": {p.name}, "password": {p.password}})
	if err != nil || status != http.StatusSeeOther {
		return nil, fmt.Errorf("%s cannot sign in: %d %s %w", p.name, status, text, err)
	}
	p.http = browser
	return browser, nil
}

// post sends a form from a page of the console.
func (p *approver) post(ctx context.Context, browser *http.Client, path string, form url.Values) (status int, where, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.console+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", p.console)
	resp, err := browser.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 600))
	return resp.StatusCode, resp.Header.Get("Location"), string(body), err
}
