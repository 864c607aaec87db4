package action

import (
	"encoding/json"
	"time"

	"pgregory.net/rapid"
)

func (w *walk) people() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": func(*rapid.T) { w.give(w.submit()) },
		"revise": func(r *rapid.T) {
			c := w.revise()
			c.Payload = []byte(rapid.SampledFrom([]string{payload5, payload6}).Draw(r, "payload"))
			w.give(c)
		},
		"vote": func(r *rapid.T) {
			c := w.vote(rapid.SampledFrom([]By{mia, ben, ops}).Draw(r, "by"), rapid.IntRange(0, 4).Draw(r, "yes") > 0)
			c.StepUp = rapid.Bool().Draw(r, "step up")
			if rapid.IntRange(0, 3).Draw(r, "other op") == 0 {
				c.Op = w.op()
			}
			w.give(c)
		},
		"authority": func(r *rapid.T) {
			w.authority = map[string][]string{mia.ID: {"support"}}
			if rapid.Bool().Draw(r, "ben may") {
				w.authority[ben.ID] = []string{"support", "ops"}
			}
		},
		"settle": func(r *rapid.T) {
			c := w.settle(rapid.SampledFrom([]string{Happened, DidNotHappen, Partly}).Draw(r, "verdict"))
			c.By = rapid.SampledFrom([]By{ops, otto}).Draw(r, "by")
			w.give(c)
		},
		"confirm": func(r *rapid.T) {
			w.give(w.confirm(rapid.SampledFrom([]By{ops, otto}).Draw(r, "by"), rapid.Bool().Draw(r, "agree")))
		},
		"hold": func(r *rapid.T) {
			by := rapid.SampledFrom([]By{ops, otto}).Draw(r, "by")
			w.give(rapid.SampledFrom([]Command{w.take(by), w.handOver(by, otto), w.handOver(by, By{}), w.askAgain(by), w.sendAgain(by)}).Draw(r, "how"))
		},
	}
}

func (w *walk) machines() map[string]func(*rapid.T) {
	claim := rapid.SampledFrom([]string{"c1", "c2", "c3"})
	attempt := rapid.SampledFrom([]string{"t1", "t2", "t3"})
	by := rapid.SampledFrom([]By{executor, executor, rival})
	return map[string]func(*rapid.T){
		"claim": func(r *rapid.T) { w.give(w.claim(by.Draw(r, "by"), claim.Draw(r, "claim"))) },
		"renew": func(r *rapid.T) {
			w.give(Renew{Op: w.op(), By: by.Draw(r, "by"), ClaimID: claim.Draw(r, "claim")})
		},
		"release": func(r *rapid.T) {
			w.give(Release{Op: w.op(), By: executor, ClaimID: claim.Draw(r, "claim"), CaseID: "cas_" + w.op(), Code: rapid.SampledFrom([]string{"", "", "FORBIDDEN"}).Draw(r, "code")})
		},
		"attempt": func(r *rapid.T) {
			c := w.attempt(claim.Draw(r, "claim"), attempt.Draw(r, "attempt"))
			if rapid.IntRange(0, 3).Draw(r, "out of order") == 0 {
				c.Step = rapid.SampledFrom([]string{"", "price", "notify"}).Draw(r, "step")
			}
			c.Fingerprint = rapid.SampledFrom([]string{"fp", "fp", "other"}).Draw(r, "fingerprint")
			w.give(c)
		},
		"receipt": func(r *rapid.T) {
			c := w.receipt(attempt.Draw(r, "attempt"), rapid.SampledFrom([]Outcome{Success, Failure, Unknown, "", "MAYBE"}).Draw(r, "outcome"),
				rapid.SampledFrom([]Proof{ProvesNothing, ProvesAccepted, ProvesQueued, ProvesCompleted}).Draw(r, "proves"))
			c.Receipt.Conflict = rapid.Bool().Draw(r, "conflict")
			c.Receipt.Code = rapid.SampledFrom([]string{"", "", "EXECUTION_ERROR", NotSent}).Draw(r, "code")
			c.Receipt.Body = json.RawMessage(`{"a": "<\u2028>"}`)
			w.give(c)
		},
		"observation": func(r *rapid.T) {
			c := w.reading(rapid.SampledFrom([]string{"", "7", "7", "8"}).Draw(r, "version"),
				rapid.SampledFrom([]Holds{HoldsUnknown, HoldsTrue, HoldsFalse}).Draw(r, "holds"))
			c.Needs = rapid.SampledFrom([][]Need{nil, {}, {{Role: "support", Approvals: 2}}}).Draw(r, "needs")
			c.Observation.Step = rapid.SampledFrom([]string{"", "", "price", "notify"}).Draw(r, "of step")
			c.Observation.ObservedAt = w.observed(r)
			w.give(c)
		},
		"evidence": func(r *rapid.T) {
			c := w.evidence(rapid.SampledFrom([]string{FoundSucceeded, FoundNotExecuted, FoundFailed, FoundUnknown, "?"}).Draw(r, "outcome"),
				rapid.SampledFrom([]Proof{ProvesNothing, ProvesAccepted, ProvesCompleted}).Draw(r, "proves"))
			if rapid.IntRange(0, 4).Draw(r, "another step") == 0 {
				c.Found.Step = rapid.SampledFrom([]string{"", "price", "notify"}).Draw(r, "of step")
			}
			c.Found.ObservedAt = w.observed(r)
			w.give(c)
		},
		"retry": func(r *rapid.T) { w.give(w.retry(claim.Draw(r, "claim"))) },
		"linked": func(r *rapid.T) {
			w.give(Conclude{By: By{Kind: BySystem}, Linked: claim.Draw(r, "linked"), How: rapid.SampledFrom([]string{LinkResumes, LinkCompensates, LinkReplaces}).Draw(r, "how"),
				Outcome: rapid.SampledFrom([]State{Applied, Accepted, Failed}).Draw(r, "outcome")})
		},
	}
}

// observed is a moment at which something that arrives now may have been
// observed, by a clock that may be wrong.
func (w *walk) observed(r *rapid.T) time.Time {
	return w.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, -1, -60, -90, 600}).Draw(r, "observed")) * time.Second)
}
