package execution_test

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution"
	"countersign/execution/sandbox"
	"countersign/store/stage"
	"countersign/store/storetest"
	"countersign/triage"
)

// bulk is a refund that nobody has to approve, so that a hundred thousand of
// them have few events.
const bulk = `name: desk.bulk
mode: write
input_schema:
  type: object
  required: [order_id, amount]
  properties: { order_id: { type: string }, amount: { type: number }, note: { type: string } }
target: { type: order, id: /order_id, scope: shop }
object_version: none
approval: { rules: [ { when: "true", role: support, approvals: 0 } ] }
http: { method: POST, path: "/orders/{order_id}/refunds", body: payload }
execution:
  proves: completed
  reconcile:
    list: refunds.list_operations
    page: 500
    key: /key
    at: /at
    outcome: { field: /status, succeeded: [SUCCEEDED], failed: [FAILED] }
    fields: { /order_id: /answer/order_id, /amount: /answer/amount, /note: /answer/note }
    currency: /answer/currency
    settle: 1m
display: { money: { /amount: { currency: EUR, minor_units: 2 } } }
`

func bulkID(prefix string, i int) string { return fmt.Sprintf("%s_01%024d", prefix, i) }
func bulkOrder(i int) string             { return fmt.Sprintf("bulk-%06d", i) }

// copies writes n actions that are done, each as one that really was, an hour
// ago and on, a tenth of a second apart; the business system has them as well.
func (b *bench) copies(n int) (begin time.Time) {
	b.T.Helper()
	b.Tool(bulk)
	snap, _, err := b.Approvals.Propose(b.T.Context(), b.Agent, approvals.Proposal{Key: action.NewSecret(8), Tool: "desk.bulk", Actor: action.Actor{ID: actor},
		Payload: []byte(`{"order_id":"bulk-order","amount":10}`)})
	b.must(err)
	a, claim := b.Claim(snap.Action)
	a, attempt := b.Start(a, claim)
	a = b.Report(a, stage.Receipt(attempt, claim, action.Success))
	if a.State != action.Applied {
		b.T.Fatalf("the model is %s", a.State)
	}
	begin = a.Attempts[0].At.Add(-time.Duration(n)*100*time.Millisecond - time.Hour).Truncate(time.Second)
	db, err := sql.Open("postgres", storetest.Owner(b.DSN))
	b.must(err)
	defer db.Close()
	for _, statement := range []string{
		`INSERT INTO events (subject, version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state, at, data)
		 SELECT 'act_01' || lpad(i::text, 24, '0'), version, op, kind, by_kind, by_id, by_name, by_role, by_method, from_state, to_state,
		     $2::timestamptz + i * interval '100 ms',
		     replace(replace(replace(data, $3, 'exk_01' || lpad(i::text, 24, '0')), 'bulk-order', 'bulk-' || lpad(i::text, 6, '0')), $4, 'cnf_' || lpad(i::text, 32, '0'))
		 FROM events, generate_series(1, $1::integer) i WHERE subject = $5`,
		`INSERT INTO bodies (subject, version, salt, content)
		 SELECT 'act_01' || lpad(i::text, 24, '0'), version, salt, convert_to(replace(convert_from(content, 'UTF8'), 'bulk-order', 'bulk-' || lpad(i::text, 6, '0')), 'UTF8')
		 FROM bodies, generate_series(1, $1::integer) i WHERE subject = $5 AND $2::timestamptz IS NOT NULL AND $3 <> $4`,
		`INSERT INTO actions (id, state, version, revision, create_op, tool, tool_version, client_id, scope, task_id, actor_id, target_type, target_id,
		     payload_hash, proposal_hash, content_version, created_at, updated_at, expires_at, roles, deciders, confirmation_ref, open_attempt, block, links, refs)
		 SELECT 'act_01' || lpad(i::text, 24, '0'), state, version, revision, create_op || i, tool, tool_version, client_id, scope, task_id, actor_id, target_type,
		     'bulk-' || lpad(i::text, 6, '0'), payload_hash, proposal_hash, content_version, $2::timestamptz + i * interval '100 ms', $2::timestamptz + i * interval '100 ms',
		     expires_at, roles, deciders, 'cnf_' || lpad(i::text, 32, '0'), open_attempt, block, links,
		     array_replace(array_replace(array_replace(refs, $3, 'exk_01' || lpad(i::text, 24, '0')), 'bulk-order', 'bulk-' || lpad(i::text, 6, '0')), $4, 'cnf_' || lpad(i::text, 32, '0'))
		 FROM actions, generate_series(1, $1::integer) i WHERE id = $5`,
		`ANALYZE`,
	} {
		args := []any{n, begin, a.ExecutionKey, a.Confirmation.Ref, a.ID}
		if statement == "ANALYZE" {
			args = nil
		}
		_, err := db.ExecContext(b.T.Context(), statement, args...)
		b.must(err)
	}
	b.must(b.refunds.SeedRefunds(b.T.Context(), func(yield func(sandbox.PaidRefund) bool) {
		for i := 1; i <= n; i++ {
			at := begin.Add(time.Duration(i) * 100 * time.Millisecond)
			if !yield(sandbox.PaidRefund{Key: bulkID("exk", i), OrderID: bulkOrder(i), AmountCents: 1000, Reason: "seeded", At: at}) {
				return
			}
		}
	}))
	return begin
}

// peak is the most memory in use while something is done: what was left after a
// collection.
func peak(do func()) uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var most atomic.Uint64
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			metrics.Read(live)
			most.Store(max(most.Load(), live[0].Value.Uint64()))
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	do()
	stop()
	watching.Wait()
	return most.Load()
}

// A8: among 100,000 records (20,000 under the race detector) exactly the 50 that diverged silently are found,
// none of those that are only written apart, and a window ten times as large
// takes no more memory.
func TestA8_FiftyOfAHundredThousand(t *testing.T) {
	const n = many
	b := newBench(t)
	begin := b.copies(n)
	keys := func(from, count int) []string {
		all := make([]string, count)
		for i := range all {
			all[i] = bulkID("exk", from+i*17)
		}
		return all
	}
	for kind, where := range map[sandbox.Divergence][2]int{
		sandbox.DivergeAmount: {n * 5 / 10, 20}, sandbox.DivergeStatus: {n * 6 / 10, 15}, sandbox.DivergeMissing: {n * 7 / 10, 10}, sandbox.DivergeExtra: {n * 8 / 10, 5},
		sandbox.FormTimeZone: {1, 500}, sandbox.FormDecimals: {2, 500}, sandbox.FormAmountText: {3, 500}, sandbox.FormNull: {4, 500},
	} {
		b.must(b.refunds.Diverge(t.Context(), kind, keys(where[0], where[1])...))
	}
	config := b.serving("desk.bulk")
	config.Systems[0].Tools = append(config.Systems[0].Tools, "refunds.list_operations")
	b.startWith(config, execution.Options{})
	compare := func(from, to time.Time) (run triage.Run) {
		run, err := b.Reconciler.Ask(t.Context(), triage.Who{ID: b.Ops().ID}, triage.Asked{Op: action.NewSecret(8), Tool: "desk.bulk", From: from, To: to})
		b.must(err)
		return b.over(run)
	}
	span := time.Duration(n) * 100 * time.Millisecond
	var tenth, all triage.Run
	small := peak(func() { tenth = compare(begin, begin.Add(span/10)) })
	large := peak(func() { all = compare(begin, begin.Add(span+time.Second)) })
	if tenth.Totals.Exceptions() != 0 || tenth.Totals.Matched < n/10-2 {
		t.Errorf("a tenth: %s, %+v", tenth.State, tenth.Totals)
	}
	got := all.Totals
	if all.State != triage.RunDone || got.Mismatch != 35 || got.OursOnly != 10 || got.TheirsOnly != 5 || got.Matched != n-45 || got.Awaiting+got.Others != 0 {
		t.Errorf("all: %s after %d pages of %d: %+v", all.State, all.Pages, all.Listed, got)
	}
	if got.Forms["zone"] != 500 || got.Forms["decimals"] != 1000 || got.Forms["absent"] != 500 {
		t.Errorf("written apart: %v", got.Forms)
	}
	cases := 0
	for _, d := range b.found(all, "") {
		if d.CaseID != "" && d.CaseOpen {
			cases++
		}
	}
	if cases != 45 {
		t.Errorf("%d cases", cases)
	}
	if large > small+small/2+16<<20 {
		t.Errorf("%d MiB for all, %d MiB for a tenth", large>>20, small>>20)
	}
}
