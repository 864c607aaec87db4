//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

// quiet is how long nothing may change before what is open is left to people:
// longer than the longest pause between two questions.
const quiet = 14 * time.Second

// ended are the states after which nothing follows by itself.
func ended(state string) bool {
	return action.State(state).In(action.Applied, action.Failed, action.Conflict, action.Expired, action.Rejected, action.Cancelled)
}

// begun waits until every action was taken up by an executor.
func (s *stack) begun(ctx context.Context) error {
	for _, state := range []action.State{action.Proposed, action.Confirmed} {
		for {
			f := execution.Filter{Tool: tool, State: string(state), Limit: 1}
			page, err := again(ctx, func() (api.List[api.Action], error) { return s.reader.List(ctx, f) })
			if err != nil {
				return fmt.Errorf("listing actions: %w", err)
			}
			if len(page.Items) == 0 {
				break
			}
			if err := pause(ctx, time.Second); err != nil {
				return fmt.Errorf("waiting for %s to be executed: %w", page.Items[0].ID, err)
			}
		}
	}
	return nil
}

// settle waits until every action has an end, or nothing changes any more, and
// returns them all.
func (s *stack) settle(ctx context.Context, say func(string, ...any)) ([]api.Action, error) {
	changed, last := time.Now(), ""
	for {
		open, mark, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		if mark != last {
			say("open: %s", count(open))
			changed, last = time.Now(), mark
		}
		waiting := 0
		for state, n := range open {
			if state != string(action.ResultUnknown) {
				waiting += n
			}
		}
		calm := time.Since(changed)
		if len(open) == 0 || waiting == 0 && calm > quiet || calm > 4*quiet {
			break
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", count(open), err)
		}
	}
	return s.list(ctx, execution.Filter{Tool: tool})
}

// open counts the actions without an end by state; mark changes with them.
func (s *stack) open(ctx context.Context) (open map[string]int, mark string, err error) {
	open = map[string]int{}
	versions := int64(0)
	for _, state := range action.States() {
		if ended(string(state)) {
			continue
		}
		actions, err := s.list(ctx, execution.Filter{Tool: tool, State: string(state)})
		if err != nil {
			return nil, "", err
		}
		for _, a := range actions {
			open[a.State]++
			versions += a.Version
		}
	}
	return open, fmt.Sprint(open, versions), nil
}

func (s *stack) list(ctx context.Context, f execution.Filter) ([]api.Action, error) {
	var all []api.Action
	f.Limit = 200
	for {
		page, err := again(ctx, func() (api.List[api.Action], error) { return s.reader.List(ctx, f) })
		if err != nil {
			return nil, fmt.Errorf("listing actions: %w", err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		f.Cursor = *page.NextCursor
	}
}

// verdict is what must not be, with an example line for each.
type verdict struct {
	lost, doubled, unsettled, overstated int
	lines                                []string
}

func (v *verdict) note(n *int, format string, args ...any) {
	*n++
	if len(v.lines) < 40 {
		v.lines = append(v.lines, fmt.Sprintf(format, args...))
	}
}

// judge holds what the console says against what the business system did.
func judge(known []refund, actions []api.Action, truth paid) verdict {
	var v verdict
	byID := map[string]api.Action{}
	byKey := map[string]bool{}
	for _, a := range actions {
		byID[a.ID], byKey[a.ExecutionKey] = a, true
	}
	for _, r := range known {
		a, found := byID[r.id]
		if !found || a.ExecutionKey != r.key {
			v.note(&v.lost, "lost: %s on %s is not there", r.id, r.order)
			continue
		}
		done := int(math.Round(truth.orders[r.order] / r.amount))
		if done > 1 {
			v.note(&v.doubled, "doubled: %s on %s was paid %d times", r.id, r.order, done)
		}
		if !ended(a.State) && (a.State != string(action.ResultUnknown) || a.CaseID == nil) {
			v.note(&v.unsettled, "unsettled: %s is %s", r.id, a.State)
		}
		if why := overstated(a, done, truth.operations[r.key]); why != "" {
			v.note(&v.overstated, "overstated: %s is %s and %q: %s", r.id, a.State, a.Statement.Level, why)
		}
	}
	for _, o := range truth.operations {
		if o.Executions > 0 && !byKey[o.Key] {
			v.note(&v.lost, "lost: %s was paid and belongs to no action", o.Key)
		}
	}
	return v
}

// overstated says what a statement claims that did not happen, "" for nothing.
func overstated(a api.Action, done int, o operation) string {
	switch level := action.Level(a.Statement.Level); {
	case level == action.LevelCompleted && done == 0:
		return "nothing was paid"
	case (level == action.LevelFailed || level == action.LevelNotSubmitted) && done > 0:
		return "it was paid"
	case (level == action.LevelAccepted || level == action.LevelQueued) && o.Status == "":
		return "nothing was accepted"
	case ended(a.State) && action.State(a.State) != action.Applied && done > 0:
		return "it was paid"
	}
	return ""
}

// report prints what came of the run. clean says that nothing is there that
// must not be.
func (s *stack) report(ctx context.Context, out io.Writer, took time.Duration, known []refund, actions []api.Action, struck map[string]int) (bool, error) {
	if err := s.shop.disarm(ctx); err != nil {
		return false, err
	}
	truth, err := s.shop.paid(ctx)
	if err != nil {
		return false, err
	}
	hits, err := s.shop.hits(ctx)
	if err != nil {
		return false, err
	}
	fold, foldErr := s.admin(ctx, "", "fold", "--check")
	v := judge(known, actions, truth)
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\nwhat went wrong\ttimes\n")
	for _, counts := range []map[string]int{hits, struck} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "%s\t%d\n", name, counts[name])
		}
	}
	fmt.Fprintf(w, "\nends as\tsays\tattempts\tpaid\tnot paid\n")
	rows := map[string][2]int{}
	for _, a := range actions {
		row := fmt.Sprintf("%s\t%s\t%d", a.State, a.Statement.Level, a.HandlerExecutions)
		n := rows[row]
		if truth.operations[a.ExecutionKey].Executions > 0 {
			n[0]++
		} else {
			n[1]++
		}
		rows[row] = n
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(w, "%s\t%d\t%d\n", row, rows[row][0], rows[row][1])
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nfold --check: %s\n", strings.TrimSpace(fold))
	for _, line := range v.lines {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "%d refunds in %.0f s, %.0f a second\n", len(known), took.Seconds(), float64(len(known))/took.Seconds())
	fmt.Fprintf(out, "lost %d, doubled %d, unsettled %d, overstated %d\n", v.lost, v.doubled, v.unsettled, v.overstated)
	return foldErr == nil && v.lost+v.doubled+v.unsettled+v.overstated == 0, nil
}

// count tells how many there are of each.
func count(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[name], name))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
