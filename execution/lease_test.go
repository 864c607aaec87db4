package execution

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// stepped is a clock that moves only when it is told to. A sleeper is told of
// on waiting and sleeps until wake.
type stepped struct {
	mu      sync.Mutex
	now     time.Time
	waiting chan time.Duration
	wake    chan struct{}
}

func newStepped() *stepped {
	return &stepped{now: time.Now(), waiting: make(chan time.Duration), wake: make(chan struct{})}
}

func (s *stepped) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stepped) forward(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *stepped) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case s.waiting <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leaseOn(t *testing.T, clock *stepped, script ...http.HandlerFunc) *lease {
	t.Helper()
	c := newConsole(t, script...)
	client, err := NewClient(c.URL, NewSecret("k"), Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	l := keep(t.Context(), client, "act_1", "clm_1", clock.Now(), api.Lease{TTLMillis: 60_000})
	t.Cleanup(l.stop)
	return l
}

func TestLeaseIsRenewedInTime(t *testing.T) {
	clock := newStepped()
	l := leaseOn(t, clock, says(200, `{"ttl_ms":60000}`))
	for range 5 {
		if pause := <-clock.waiting; pause != 20*time.Second {
			t.Fatalf("renews after %s", pause)
		}
		clock.forward(20 * time.Second)
		clock.wake <- struct{}{}
	}
	<-clock.waiting // the fifth renewal is done
	if left := l.left(); left != time.Minute {
		t.Errorf("%s left after 100 s", left)
	}
}

func TestLeaseThatIsLostIsLost(t *testing.T) {
	clock := newStepped()
	l := leaseOn(t, clock, problem(409, action.LeaseLost))
	<-clock.waiting
	clock.forward(20 * time.Second)
	clock.wake <- struct{}{}
	<-l.finished
	if l.live() {
		t.Error("still live")
	}
}

func TestLeaseRunsOutByItself(t *testing.T) {
	for name, jump := range map[string]func(time.Time) time.Time{
		"by the monotonic clock": func(now time.Time) time.Time { return now.Add(time.Minute) },
		"by the wall clock alone": func(now time.Time) time.Time { // as after a suspend
			return now.Round(0).Add(time.Minute)
		},
	} {
		start := time.Now()
		l := &lease{clock: &still{now: jump(start)}, start: start, ttl: time.Minute}
		if l.live() {
			t.Errorf("%s: still live after a minute", name)
		}
	}
}
