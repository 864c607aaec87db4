package sandbox

import (
	"context"
	"log/slog"
	"time"
)

// workPause is how long a worker that found nothing to do waits.
const workPause = 100 * time.Millisecond

// work settles what was accepted and delivers callbacks, until the sandbox is
// closed. Any number of processes may do so at once.
func (s *Sandbox) work() {
	s.workers.Go(func() { s.repeat("settling", s.settleNext) })
	s.workers.Go(func() { s.repeat("taking service requests on", s.serveNext) })
	s.workers.Go(func() { s.repeat("calling back", s.deliverDue) })
}

func (s *Sandbox) repeat(what string, step func(context.Context) (bool, error)) {
	for s.life.Err() == nil {
		found, err := step(s.life)
		pause := workPause
		if err != nil && s.life.Err() == nil {
			slog.Warn("sandbox "+what, "error", err)
			pause *= 10
		}
		if !found || err != nil {
			_ = wait(s.life, pause) // the loop looks whether it is over
		}
	}
}
