// Package action is the life of one action: its states, the events that move
// it, and the pure function that decides whether a command may.
//
// Everything that is known of an action is in its events. [Fold] turns events
// into an [Action]; [Decide] turns an action and a command into the next event
// or a [Refusal]; [Change] runs that against a [Ledger].
package action

import "slices"

// State is where an action stands.
type State string

// The twelve states. docs/states.md draws how they follow each other.
const (
	Draft         State = "draft"
	Proposed      State = "proposed"
	Confirmed     State = "confirmed"
	Executing     State = "executing"
	Accepted      State = "accepted"
	Applied       State = "applied"
	Failed        State = "failed"
	Conflict      State = "conflict"
	ResultUnknown State = "result_unknown"
	Rejected      State = "rejected"
	Cancelled     State = "cancelled"
	Expired       State = "expired"
)

// States lists every state in the order of a life.
func States() []State {
	return []State{Draft, Proposed, Confirmed, Executing, Accepted, Applied,
		Failed, Conflict, ResultUnknown, Rejected, Cancelled, Expired}
}

// In reports whether s is one of the given states.
func (s State) In(states ...State) bool { return slices.Contains(states, s) }

// Open reports whether an action in this state can still take effect: a second
// one with the same content is refused meanwhile.
func (s State) Open() bool { return s.In(Proposed, Confirmed, Executing, ResultUnknown) }

// Proof is what evidence shows of an effect, weakest first.
type Proof string

// A receipt proves one of these, at most what its contract allows.
const (
	ProvesNothing   Proof = ""
	ProvesAccepted  Proof = "accepted"
	ProvesQueued    Proof = "queued"
	ProvesCompleted Proof = "completed"
)

func (p Proof) rank() int {
	return slices.Index([]Proof{ProvesNothing, ProvesAccepted, ProvesQueued, ProvesCompleted}, p)
}

// Stronger returns the stronger of two proofs.
func (p Proof) Stronger(q Proof) Proof {
	if q.rank() > p.rank() {
		return q
	}
	return p
}

// weaker returns the weaker of two proofs.
func (p Proof) weaker(q Proof) Proof {
	if p.Stronger(q) == p {
		return q
	}
	return p
}

// Outcome is what is known of one attempt.
type Outcome string

// The three values of a receipt.
const (
	Success Outcome = "SUCCESS"
	Failure Outcome = "FAILURE"
	Unknown Outcome = "UNKNOWN"
)

// Holds is a three-valued answer: a query that failed says nothing.
type Holds string

// What a read-back says of the post-conditions.
const (
	HoldsUnknown Holds = ""
	HoldsTrue    Holds = "true"
	HoldsFalse   Holds = "false"
)
