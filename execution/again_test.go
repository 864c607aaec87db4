package execution_test

import (
	"testing"

	"countersign/action"
	"countersign/people"
	"countersign/triage"
)

// Nobody can say what became of two refunds: one was paid, the other never
// arrived. A person has both sent once more under their keys. The first is
// answered with what it had come to, the second is paid now; each is paid once.
func TestReport27_APersonSendsAgainWhatNobodyCanTell(t *testing.T) {
	t.Parallel()
	paced(t, func(t *trial) {
		b := newBench(t)
		b.sweeping()
		b.hurried(hurried, "max_polls: 6", "max_polls: 1")
		b.full("AGAIN", 2)
		b.arm(`{"object":"AGAIN-000001","fault":"act-then-reset"}`)
		b.arm(`{"object":"AGAIN-000002","fault":"lost-request"}`)
		b.arm(`{"system":"refunds","method":"GET","path":"/refunds/operations","fault":"malformed","count":0}`)
		olga := b.Person("olga", people.RoleOps)
		var lost []action.Action
		for _, order := range []string{"AGAIN-000001", "AGAIN-000002"} {
			lost = append(lost, b.approved(hurried, order))
		}
		b.start(b.serving(hurried))
		for i, a := range lost {
			lost[i] = b.await(a.ID, "left to people", func(a action.Action) bool { return a.Exhausted() })
		}
		b.shopDo("DELETE", "/faults", b.tokens.Control, "")
		for _, a := range lost {
			early := 0
			b.eventually("a person to have it sent again", func() bool {
				_, err := b.Cases.SendAgain(t.Context(), triage.Who{ID: olga.ID, Method: people.ByPassword}, triage.See(b.get(a.ID)))
				if err != nil && action.AsRefusal(err).Reason != "retry-fence" {
					t.Fatal(err)
				}
				if err != nil {
					early++
				}
				return err == nil
			})
			if early == 0 && a.ID == lost[0].ID {
				t.Error("it was sent again while the first request could still arrive")
			}
			a = b.ends(a.ID, action.Applied)
			if n, paid := b.executions("refunds", a.ExecutionKey), b.refunded(a.Target.ID); n != 1 || paid != 10 || len(a.Attempts) != 2 || b.sent(a.ExecutionKey) != 2 {
				t.Errorf("done %d times, %v paid: %s", n, paid, story(a))
			}
		}
	})
}
