package execution

import (
	"cmp"
	"context"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// Verify asks whether a confirmation stands for this hash and object version.
func (c *Client) Verify(ctx context.Context, ref string, v api.Verify) (api.Verified, error) {
	var answer api.Verified
	err := c.do(ctx, post(v, "confirmations", ref, "verify"), &answer)
	return answer, err
}

// Claim takes a confirmation. Repeating a claim id while the claim is live
// gives the same answer.
func (c *Client) Claim(ctx context.Context, ref string, claim api.Claim) (api.Claimed, error) {
	var answer api.Claimed
	err := c.do(ctx, post(claim, "confirmations", ref, "claim"), &answer)
	return answer, err
}

// Work waits for work on tools that match the patterns, at most MaxWait. No
// patterns means all that the key may see.
func (c *Client) Work(ctx context.Context, wait time.Duration, patterns []string) (api.WorkList, error) {
	r := get("work").waiting(wait)
	if len(patterns) > 0 {
		r.query["tool"] = patterns
	}
	var list api.WorkList
	err := c.do(ctx, r, &list)
	return list, err
}

// Renew extends a live claim. It fails with lease-lost when there is none.
func (c *Client) Renew(ctx context.Context, id, claimID string) (api.Lease, error) {
	var lease api.Lease
	err := c.do(ctx, post(api.Renew{ClaimID: claimID, LeaseID: action.NewSecret(16)}, "actions", id, "lease"), &lease)
	return lease, err
}

// Release gives a claim back before any attempt; with a code the action
// cannot run at all and fails.
func (c *Client) Release(ctx context.Context, id string, r api.Release) (api.Action, error) {
	return c.action(ctx, post(r, "actions", id, "release"))
}

// StartAttempt asks for leave to send one request. The time in the answer
// counts from before the first call: the console may have said yes to one
// whose answer was lost.
func (c *Client) StartAttempt(ctx context.Context, id string, a api.Attempt) (api.AttemptStarted, error) {
	var started api.AttemptStarted
	err := c.do(ctx, post(a, "actions", id, "attempts"), &started)
	return started, err
}

// Report reports what is known of an attempt.
func (c *Client) Report(ctx context.Context, id string, r api.Receipt) (api.Action, error) {
	r.ReceiptID = cmp.Or(r.ReceiptID, action.NewSecret(16))
	return c.action(ctx, post(r, "actions", id, "receipts"))
}

// Observe reports what a read-only query showed.
func (c *Client) Observe(ctx context.Context, id string, o api.Observation) (api.Action, error) {
	o.ObservationID = cmp.Or(o.ObservationID, action.NewSecret(16))
	return c.action(ctx, post(o, "actions", id, "observations"))
}
