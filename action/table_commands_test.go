package action

import (
	"time"
)

// stations bring a new life to a column of the table.
func stations() map[string]func(*life) {
	return map[string]func(*life){
		"none":      func(*life) {},
		"draft":     func(l *life) { l.do(l.draft(), Draft) },
		"proposed":  func(l *life) { l.proposed() },
		"confirmed": func(l *life) { l.confirmed() },
		"claimed":   func(l *life) { l.claimed() },
		"sent":      func(l *life) { l.sent() },
		"accepted":  func(l *life) { l.sent().do(l.receipt("t1", Success, ProvesAccepted), Accepted) },
		"verifying": func(l *life) {
			l.terms.Verify = true
			l.sent().do(l.receipt("t1", Success, ProvesCompleted), Accepted)
		},
		"applied":  func(l *life) { l.sent().do(l.receipt("t1", Success, ProvesCompleted), Applied) },
		"failed":   func(l *life) { l.sent().do(l.failure("t1", "", false), Failed) },
		"conflict": func(l *life) { l.sent().do(l.failure("t1", "", true), Conflict) },
		"unknown": func(l *life) {
			l.unknown().do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
		},
		"settling": func(l *life) {
			l.unknown().do(l.evidence(FoundNotExecuted, ProvesNothing), ResultUnknown)
			l.do(l.settle(DidNotHappen), ResultUnknown)
		},
		"mismatch": func(l *life) {
			l.terms.Verify, l.terms.VerifyTries = true, 1
			l.sent().do(l.receipt("t1", Success, ProvesCompleted), Accepted)
			l.do(l.reading("7", HoldsFalse), ResultUnknown)
		},
		"between": func(l *life) { l.between("t1") },
		"in part": func(l *life) {
			l.between("t0").do(l.attempt("c1", "t1"), Executing)
			l.do(l.failure("t1", "", false), ResultUnknown)
		},
		"rejected":  func(l *life) { l.proposed().do(l.vote(mia, false), Rejected) },
		"cancelled": func(l *life) { l.confirmed().do(Cancel{Op: "c", By: proposer}, Cancelled) },
		"expired":   func(l *life) { l.proposed().wait(time.Hour).do(Tick{}, Expired) },
	}
}

// tableCommands make the row's command for whatever the life has come to.
func tableCommands() map[string]func(*life) Command {
	nobody := []Need{}
	settle := func(verdict string) func(*life) Command {
		return func(l *life) Command { return l.settle(verdict) }
	}
	receipt := func(o Outcome, p Proof) func(*life) Command {
		return func(l *life) Command { return l.receipt("t1", o, p) }
	}
	failure := func(code string, conflict bool) func(*life) Command {
		return func(l *life) Command { return l.failure("t1", code, conflict) }
	}
	evidence := func(o string, p Proof) func(*life) Command {
		return func(l *life) Command { return l.evidence(o, p) }
	}
	return map[string]func(*life) Command{
		"Propose":       func(l *life) Command { c := l.propose(); c.Op = "propose:2"; return c },
		"Propose draft": func(l *life) Command { c := l.draft(); c.Op = "propose:2"; return c },
		"Propose nobody asked": func(l *life) Command {
			c := l.propose()
			c.Op, c.Needs = "propose:2", nobody
			return c
		},
		"Submit":                    func(l *life) Command { return l.submit() },
		"Submit nobody asked":       func(l *life) Command { c := l.submit(); c.Needs = nobody; return c },
		"Revise":                    func(l *life) Command { return l.revise() },
		"Vote approve":              func(l *life) Command { return l.vote(ben, true) },
		"Vote approve, more needed": func(l *life) Command { l.a.Needs = []Need{{Role: "support", Approvals: 2}}; return l.vote(ben, true) },
		"Count": func(l *life) Command {
			if l.a.State == Proposed { // one of two approvals, and nobody else is asked for any more
				l.a.Needs = []Need{{Role: "support", Approvals: 2}}
				l.do(l.vote(mia, true), Proposed)
				l.a.Needs = []Need{{Role: "support", Approvals: 1}}
			}
			return Count{Ref: "cnf_count"}
		},
		"Vote reject":          func(l *life) Command { return l.vote(ben, false) },
		"Vote on another hash": func(l *life) Command { c := l.vote(ben, true); c.ProposalHash = "sha256:00"; return c },
		"Cancel":               func(l *life) Command { return Cancel{Op: l.op(), By: proposer} },
		"Tick early":           func(l *life) Command { l.wait(time.Second); return Tick{CaseID: "cas_t"} },
		"Tick after the lease": func(l *life) Command { l.wait(time.Minute); return Tick{CaseID: "cas_t"} },
		"Tick after a day":     func(l *life) Command { l.wait(24 * time.Hour); return Tick{CaseID: "cas_t"} },
		"TakeClaim":            func(l *life) Command { return l.claim(rival, "c9") },
		"TakeClaim of another hash": func(l *life) Command {
			c := l.claim(rival, "c9")
			c.ProposalHash = "sha256:00"
			return c
		},
		"TakeClaim of another version": func(l *life) Command {
			c := l.claim(rival, "c9")
			c.ObjectVersion = ptr("8")
			return c
		},
		"Renew":            func(l *life) Command { return Renew{Op: l.op(), By: executor, ClaimID: "c1"} },
		"Renew by another": func(l *life) Command { return Renew{Op: l.op(), By: rival, ClaimID: "c1"} },
		"Release":          func(l *life) Command { return Release{Op: l.op(), By: executor, ClaimID: "c1", CaseID: "cas_r"} },
		"Release after the confirmation": func(l *life) Command {
			switch {
			case l.a.State == Executing && len(l.a.Attempts) == 0: // its first lease is longer
				late := newLife(l.t)
				late.terms.Lease = 10 * time.Minute
				*l = *late.claimed().wait(6 * time.Minute)
			case l.a.State == Executing:
				for range 6 {
					l.wait(50*time.Second).do(Renew{Op: l.op(), By: executor, ClaimID: "c1"}, Executing)
				}
			}
			return Release{Op: l.op(), By: executor, ClaimID: "c1", CaseID: "cas_r"}
		},
		"Release for good": func(l *life) Command {
			return Release{Op: l.op(), By: executor, ClaimID: "c1", Code: "FORBIDDEN", CaseID: "cas_r"}
		},
		"StartAttempt":                      func(l *life) Command { return l.attempt("c1", "t9") },
		"AddReceipt SUCCESS accepted":       receipt(Success, ProvesAccepted),
		"AddReceipt SUCCESS completed":      receipt(Success, ProvesCompleted),
		"AddReceipt FAILURE":                failure("", false),
		"AddReceipt FAILURE, other version": failure("", true),
		"AddReceipt FAILURE, not sent":      failure(NotSent, false),
		"AddReceipt UNKNOWN":                receipt(Unknown, ProvesNothing),
		"AddObservation failed": func(l *life) Command {
			c := l.reading("", HoldsUnknown)
			c.Observation.Failed, c.Observation.Error, c.Observation.Snapshot = true, "timeout", nil
			return c
		},
		"AddObservation not there": func(l *life) Command {
			c := l.reading("", HoldsUnknown)
			c.Observation.Failed, c.Observation.Absent, c.Observation.Error, c.Observation.Snapshot = true, true, "404", nil
			return c
		},
		"AddObservation other version":    func(l *life) Command { return l.reading("8", HoldsUnknown) },
		"AddObservation holds":            func(l *life) Command { return l.reading("7", HoldsTrue) },
		"AddObservation does not hold":    func(l *life) Command { return l.reading("7", HoldsFalse) },
		"AddObservation still not":        func(l *life) Command { l.wait(20 * time.Second); return l.reading("7", HoldsFalse) },
		"AddEvidence SUCCEEDED accepted":  evidence(FoundSucceeded, ProvesAccepted),
		"AddEvidence SUCCEEDED completed": evidence(FoundSucceeded, ProvesCompleted),
		"AddEvidence FAILED":              evidence(FoundFailed, ProvesNothing),
		"AddEvidence NOT_EXECUTED":        evidence(FoundNotExecuted, ProvesNothing),
		"AddEvidence NOT_EXECUTED, no key": func(l *life) Command {
			l.wait(24 * time.Hour)
			return l.evidence(FoundNotExecuted, ProvesNothing)
		},
		"AddEvidence UNKNOWN":        evidence(FoundUnknown, ProvesNothing),
		"StartRetry":                 func(l *life) Command { return l.retry("c2") },
		"StartRetry without the key": func(l *life) Command { l.wait(22 * time.Hour); return l.retry("c2") },
		"Settle happened":            settle(Happened),
		"Settle happened, acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			return l.settle(Happened)
		},
		"Settle partly":                 settle(Partly),
		"Settle did not happen":         settle(DidNotHappen),
		"Settle did not happen, fenced": func(l *life) Command { l.wait(3 * time.Minute); return l.settle(DidNotHappen) },
		"Settle anything else":          settle("perhaps"),
		"Settle another version":        func(l *life) Command { c := l.settle(Happened); c.Version--; return c },
		"Settle another snapshot": func(l *life) Command {
			c := l.settle(Happened)
			c.Verdict.SnapshotHash = "sha256:00"
			return c
		},
		"Settle without evidence": func(l *life) Command {
			c := l.settle(Happened)
			c.Verdict.EvidenceRef = " "
			return c
		},
		"Settle held by another":      func(l *life) Command { l.held(otto); return l.settle(Happened) },
		"Settle where two are needed": func(l *life) Command { l.a.Terms.SecondPerson = true; return l.settle(Happened) },
		"Confirm":                     func(l *life) Command { l.waiting(Happened); return l.confirm(otto, true) },
		"Confirm acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			l.waiting(Happened)
			return l.confirm(otto, true)
		},
		"Confirm did not happen, fenced": func(l *life) Command {
			l.wait(3 * time.Minute).waiting(DidNotHappen)
			return l.confirm(otto, true)
		},
		"Confirm and refuse":         func(l *life) Command { l.waiting(Happened); return l.confirm(otto, false) },
		"Confirm by the same person": func(l *life) Command { l.waiting(Happened); return l.confirm(ops, true) },
		"Confirm nothing":            func(l *life) Command { return l.confirm(otto, true) },
		"TakeCase":                   func(l *life) Command { return l.take(ops) },
		"TakeCase held by another":   func(l *life) Command { l.held(otto); return l.take(ops) },
		"TakeCase as it was":         func(l *life) Command { c := l.take(ops); c.Version--; return c },
		"HandOver":                   func(l *life) Command { return l.handOver(ops, otto) },
		"AskAgain":                   func(l *life) Command { l.query(); return l.askAgain(ops) },
		"AskAgain without a query":   func(l *life) Command { return l.askAgain(ops) },
		"SendAgain":                  func(l *life) Command { return l.missed(3 * time.Minute).sendAgain(ops) },
		"SendAgain before the fence": func(l *life) Command { return l.missed(0).sendAgain(ops) },
		"SendAgain without the key":  func(l *life) Command { return l.missed(22 * time.Hour).sendAgain(ops) },
		"SendAgain held by another":  func(l *life) Command { l.held(otto); return l.missed(3 * time.Minute).sendAgain(ops) },

		"AddReceipt FAILURE, undoing another": func(l *life) Command { l.undoing(); return l.failure("t1", "", false) },
		"AddReceipt FAILURE, not sent, undoing another": func(l *life) Command {
			l.undoing()
			return l.failure("t1", NotSent, false)
		},
		"AddObservation does not hold, undoing another": func(l *life) Command { l.undoing(); return l.reading("7", HoldsFalse) },
		"Release for good, undoing another": func(l *life) Command {
			l.undoing()
			return Release{Op: l.op(), By: executor, ClaimID: "c1", Code: "FORBIDDEN", CaseID: "cas_r"}
		},
		"Conclude resumed": func(l *life) Command { return l.linked(LinkResumes, Applied) },
		"Conclude resumed, acceptance at most": func(l *life) Command {
			l.a.Terms.Proves = ProvesAccepted
			return l.linked(LinkResumes, Applied)
		},
		"Conclude undone":   func(l *life) Command { return l.linked(LinkCompensates, Applied) },
		"Conclude replaced": func(l *life) Command { return l.linked(LinkReplaces, Accepted) },
		"Conclude in vain":  func(l *life) Command { return l.linked(LinkResumes, Failed) },
		"Conclude what is not in part": func(l *life) Command {
			l.wait(3 * time.Minute)
			return Conclude{By: By{Kind: BySystem}, Linked: "act_2", How: LinkResumes, Outcome: Applied}
		},
	}
}
