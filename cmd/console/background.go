package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/triage"
)

// sweepBatch is how many subjects a round reads at a time.
const sweepBatch = 500

// How often contracts are looked at for a sweep that is due, and how much of
// what one left behind is removed at a time.
const (
	sweepEvery    = 10 * time.Second
	recountEvery  = 5 * time.Second
	droppedAtOnce = 20_000
)

// background runs what happens without a request. Every process has these
// loops; in each, one process at a time works.
type background struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func startBackground(db *database, service *approvals.Service, outcomes *triage.Service, callbacks *triage.Callbacks, reconciler *triage.Reconciler, log *slog.Logger) *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel}
	loop := func(name string, every time.Duration, work func(context.Context) error) {
		b.loops.Go(func() { db.Loop(ctx, log, name, every, work) })
	}
	loop("sweep", time.Second, func(ctx context.Context) error {
		return action.Sweep(ctx, db.DB, db.Due, sweepBatch)
	})
	loop("count approvals", recountEvery, func(ctx context.Context) error {
		return service.Recount(ctx, sweepBatch)
	})
	loop("conclude", time.Second, outcomes.Conclude)
	loop("sweep tasks", time.Second, func(ctx context.Context) error {
		return service.SweepTasks(ctx, db.DueTasks, sweepBatch)
	})
	loop("join callbacks", time.Second, callbacks.JoinParked)
	loop("start reconciliations", sweepEvery, reconciler.Sweep)
	loop("reconcile", time.Second, func(ctx context.Context) error {
		return errors.Join(reconciler.Step(ctx), db.DropStaged(ctx, droppedAtOnce))
	})
	loop("tidy", time.Hour, func(ctx context.Context) error {
		return errors.Join(db.TidyCredentials(ctx), db.TidyCallbacks(ctx), db.TidyExecutors(ctx))
	})
	return b
}

// stop waits until what runs has ended.
func (b *background) stop() {
	b.cancel()
	b.loops.Wait()
}
