package execution

import (
	"context"
	"math/rand/v2"
	"time"
)

// Clock is the time an executor lives in. Tests bring their own.
type Clock interface {
	Now() time.Time                                   // with a monotonic reading
	Sleep(ctx context.Context, d time.Duration) error // ctx's error when it ends first
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff doubles from first to most with every try, counted from 1.
func backoff(try int, first, most time.Duration) time.Duration {
	d := first
	for range try - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

// jitter spreads d over its upper half, so that many do not come back at once.
func jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + rand.N(d/2)
}

// elapsed is the time since start, by the monotonic or the wall clock,
// whichever says more: a suspended machine stops only the first.
func elapsed(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}
