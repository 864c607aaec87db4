package handlers

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store"
	"countersign/store/stage"
)

// waited starts a request that waits and returns its answer's channel.
func (e *env) waited(role, path string) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- e.get(role, path) }()
	return answers
}

// waiters polls until this many requests wait.
func (s *server) waiters(t *testing.T, n int) {
	t.Helper()
	waitUntil(t, func() bool { return s.waiting.count() == n })
}

// still fails the test when an answer came that should not have.
func still(t *testing.T, answers <-chan answer) {
	t.Helper()
	select {
	case a := <-answers:
		t.Fatalf("answered too soon: %d %s", a.status, a.body)
	default:
	}
}

func TestWaitForADecision(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	if now := into[api.Action](e.get(people.RoleProposer, "/v1/actions/"+a.ID+"?wait=60s").want(200)); now.Version != 1 {
		t.Errorf("version %d", now.Version) // nothing is known yet, so this is news
	}
	answers := e.waited(people.RoleProposer, "/v1/actions/"+a.ID+"?wait=60s&since=1")
	e.inner.waiters(t, 1)
	e.proposed(stage.SetPrice) // a change of something else
	still(t, answers)
	e.Approve(e.Read(a.ID), e.Mia)
	if now := into[api.Action]((<-answers).want(200)); now.Version != 2 || now.State != "confirmed" {
		t.Errorf("woken by %+v", now)
	}
	e.inner.waiters(t, 0)
}

// A change that another process wrote is found without its hint.
func TestWaitAcrossProcesses(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	answers := e.waited(people.RoleProposer, "/v1/actions/"+a.ID+"?wait=60&since=1")
	e.inner.waiters(t, 1)
	other := e.Open(e.DSN, store.Options{MaxConns: 2})
	if _, err := other.Approvals.Decide(context.Background(), e.Mia.ID, a.ID, stage.Ballot(e.Read(a.ID))); err != nil {
		t.Fatal(err)
	}
	if now := into[api.Action]((<-answers).want(200)); now.Version != 2 {
		t.Errorf("woken by %+v", now)
	}
}

func TestWaitForWork(t *testing.T) {
	e := newEnv(t)
	answers := e.waited(people.RoleExecutor, "/v1/work?wait=60s&tool=shop.set_*")
	e.inner.waiters(t, 1)
	e.Confirmed(stage.AskOther, stage.Product())
	still(t, answers)
	a := e.Confirmed(stage.SetPrice, stage.Product())
	if list := into[api.WorkList]((<-answers).want(200)); len(list.Items) != 1 || list.Items[0].ActionID != a.ID {
		t.Errorf("offered %+v", list.Items)
	}
}

func TestWaitsEnd(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	address := "/v1/actions/" + a.ID
	if now := into[api.Action](e.get(people.RoleProposer, address+"?wait=10ms&since=1").want(200)); now.Version != 1 {
		t.Errorf("%+v", now)
	}
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, get, e.server.URL+address+"?wait=60s&since=1", nil)
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+e.keys[people.RoleProposer])
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}
		gone <- err
	}()
	e.inner.waiters(t, 1)
	leave()
	if err := <-gone; err == nil {
		t.Error("somebody who left was answered")
	}
	e.inner.waiters(t, 0)
	answers := e.waited(people.RoleProposer, address+"?wait=60s&since=1")
	e.inner.waiters(t, 1)
	close(e.stopping) // the console shuts down
	if now := into[api.Action]((<-answers).want(200)); now.Version != 1 {
		t.Errorf("%+v", now)
	}
	for _, wrong := range []string{"wait=soon", "wait=-1s", "since=-1", "since=x"} {
		e.get(people.RoleProposer, address+"?"+wrong).refused(action.InvalidArgument)
	}
}

func TestTooManyWait(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	for range maxWaitingEach { // all that one client may have
		if _, ok := e.inner.waiting.take(e.Agent.ID); !ok {
			t.Fatal("no place is left")
		}
	}
	answer := e.get(people.RoleProposer, "/v1/actions/"+a.ID+"?wait=60s&since=1")
	if p := answer.refused(action.RateLimited); p.Reason != "waiting" || answer.header.Get("Retry-After") == "" {
		t.Errorf("%+v", p)
	}
	e.get(people.RoleProposer, "/v1/actions/"+a.ID).want(200)

	answers := e.waited(people.RoleReader, "/v1/actions/"+a.ID+"?wait=60s&since=1") // others still wait
	e.inner.waiters(t, maxWaitingEach+1)
	still(t, answers)
	var free func()
	for i := e.inner.waiting.count(); i < maxWaiting; i++ {
		free, _ = e.inner.waiting.take(fmt.Sprint("cli_", i%3))
	}
	e.get(people.RoleExecutor, "/v1/work?wait=60s").refused(action.RateLimited)
	free()
	if _, ok := e.inner.waiting.take("cli_9"); !ok {
		t.Error("a place that was given back is not free")
	}
	close(e.stopping)
	(<-answers).want(200)
}

// One person has only so many pages told what is new; the next is told so, and
// others are as ever.
func TestTooManyPagesAreOpen(t *testing.T) {
	e := newEnv(t)
	a := e.proposed(stage.SetPrice)
	var free func()
	for range maxStreamsEach {
		free, _ = e.inner.streams.take(e.Mia.ID)
	}
	mia := e.as(e.Mia)
	for _, path := range []string{"/approvals/stream", "/actions/" + a.ID + "/stream"} {
		got := mia.open(path).want(http.StatusTooManyRequests).says("You have too many pages open")
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%s does not say when again", path)
		}
	}
	mia.open("/actions/" + a.ID).want(200)
	close(e.stopping) // what is taken ends at once
	e.as(e.Ken).open("/approvals/stream").want(200)
	free()
	mia.open("/approvals/stream").want(200)
	if n := e.inner.streams.count(); n != maxStreamsEach-1 {
		t.Errorf("%d places are taken", n)
	}
}

// count is how many requests wait.
func (s *seats) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
