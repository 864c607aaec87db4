package execution

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
)

var timedOut = reply{sent: true, err: context.DeadlineExceeded}

func testBreaker(pause time.Duration) *breaker {
	return newBreaker("http://shop.example", 3, pause, Options{Logger: slog.New(slog.DiscardHandler)}.complete(), make(chan struct{}, 1))
}

// fails sends writes that get these replies, and reports whether the system
// counts as one that answers afterwards.
func fails(t *testing.T, b *breaker, replies ...reply) bool {
	t.Helper()
	for i, r := range replies {
		tell, err := b.write()
		if err != nil {
			t.Fatalf("the breaker opened after %d", i)
		}
		tell(r)
	}
	return b.answers(true)
}

// pauses waits until the breaker would let a read find out.
func (b *breaker) pauses(t *testing.T) {
	t.Helper()
	tick, over := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for b.writes.State() != gobreaker.StateHalfOpen {
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("it never would let a read find out")
		}
	}
}

func TestE4_OneTimeoutIsNotEnough(t *testing.T) {
	refused, unavailable := reply{err: syscall.ECONNREFUSED}, reply{sent: true, status: 503}
	fine, late := reply{sent: true, status: 200}, reply{err: errLate}
	for name, c := range map[string]struct {
		replies []reply
		answers bool
	}{
		"one timeout":                  {[]reply{timedOut}, true},
		"two, an answer, two":          {[]reply{timedOut, timedOut, fine, timedOut, timedOut}, true},
		"three in a row":               {[]reply{timedOut, refused, unavailable}, false},
		"answers that refuse or break": {[]reply{{sent: true, status: 500}, {sent: true, status: 422}, {sent: true, status: 429}, {sent: true, status: 200, err: io.ErrUnexpectedEOF}}, true},
		"what was our own doing":       {[]reply{timedOut, timedOut, late, {err: context.Canceled}, late}, true},
		"does not break a row":         {[]reply{timedOut, timedOut, late, timedOut}, false},
	} {
		if got := fails(t, testBreaker(time.Hour), c.replies...); got != c.answers {
			t.Errorf("%s: answers %v", name, got)
		}
	}
}

// What is told of a breaker: closed at first, then open since a moment, and
// nothing any more once the system answers again.
func TestABreakersHealthIsTold(t *testing.T) {
	b := testBreaker(time.Millisecond)
	if h := b.health("x"); h.Reads != "closed" || h.Writes != "closed" || h.Since != nil {
		t.Errorf("at first %+v", h)
	}
	fails(t, b, timedOut, timedOut, timedOut)
	if h := b.health("x"); h.Writes == "closed" || h.Reads != "closed" || h.Since == nil || len(b.moved) != 1 {
		t.Errorf("after three timeouts %+v, %d", h, len(b.moved))
	}
	b.pauses(t)
	tell, err := b.read()
	if err != nil {
		t.Fatal(err)
	}
	tell(reply{sent: true, status: 200})
	if h := b.health("x"); h.Reads != "closed" || h.Writes != "closed" || h.Since != nil {
		t.Errorf("back again %+v", h)
	}
}

func TestE4_OnlyAReadFindsOutWhetherASystemIsBack(t *testing.T) {
	b := testBreaker(time.Millisecond)
	fails(t, b, timedOut, timedOut, timedOut)
	if _, err := b.write(); !errors.Is(err, errAway) {
		t.Fatalf("a write went out: %v", err)
	}
	for _, back := range []bool{false, true} {
		b.pauses(t)
		if _, err := b.write(); !errors.Is(err, errAway) {
			t.Fatalf("a write was the one to find out: %v", err)
		}
		tell, err := b.read()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.write(); !errors.Is(err, errAway) {
			t.Fatalf("a write went out while a read was finding out: %v", err)
		}
		if back {
			tell(reply{sent: true, status: http.StatusOK})
		} else {
			tell(timedOut)
		}
		if b.answers(true) != back {
			t.Errorf("after a read that showed %v it answers %v", back, !back)
		}
	}
}

func TestE4_WritesThatGetNoAnswerDoNotStopTheAsking(t *testing.T) {
	b := testBreaker(time.Hour)
	fails(t, b, timedOut, timedOut, timedOut)
	if b.answers(true) || !b.answers(false) {
		t.Fatal("reading and writing are not apart")
	}
	for range 3 {
		tell, err := b.read()
		if err != nil {
			t.Fatal(err)
		}
		tell(timedOut)
	}
	if _, err := b.read(); !errors.Is(err, errAway) {
		t.Errorf("a system that answers nothing is read on: %v", err)
	}
}
