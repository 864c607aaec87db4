//go:build unix

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"countersign/execution/api"
)

// A small run of the program as "make chaos" runs it, with its processes.
func TestChaos_NothingIsLostDoubledUnsettledOrOverstated(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	program := filepath.Join(t.TempDir(), "chaos")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "-n", "150", "-every", "500ms", "-rounds", "1", "-timeout", "4m")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !regexp.MustCompile(`\nlost 0, doubled 0, unsettled 0, overstated 0\n$`).Match(out) {
		t.Errorf("it ended with %v", err)
	}
	applied := regexp.MustCompile(`applied +completed +1 +(\d+) +0\n`).FindSubmatch(out)
	if applied == nil {
		t.Fatal("nothing was refunded at the first attempt")
	}
	if n, err := strconv.Atoi(string(applied[1])); err != nil || n < 75 {
		t.Errorf("only %d of 150 were refunded at the first attempt: this shows little", n)
	}
}

// What the counts would say if something went wrong: a judge that cannot
// condemn proves nothing.
func TestJudge(t *testing.T) {
	open := "cas_1"
	act := func(state, level string) api.Action {
		return api.Action{ID: "act_1", ExecutionKey: "exk_1", State: state, Statement: api.Statement{Level: level}}
	}
	unknown := act("result_unknown", "unknown")
	withCase := unknown
	withCase.CaseID = &open
	none, once := operation{}, operation{Key: "exk_1", Status: "SUCCEEDED", Executions: 1}
	for name, c := range map[string]struct {
		action                               api.Action
		paid                                 float64
		operation                            operation
		lost, doubled, unsettled, overstated int
	}{
		"done and said":              {act("applied", "completed"), 10, once, 0, 0, 0, 0},
		"failed and nothing paid":    {act("failed", "failed"), 0, none, 0, 0, 0, 0},
		"open with a case":           {withCase, 10, once, 0, 0, 0, 0},
		"open without a case":        {unknown, 10, once, 0, 0, 1, 0},
		"still approved":             {act("confirmed", "not_submitted"), 0, none, 0, 0, 1, 0},
		"paid twice":                 {act("applied", "completed"), 20, operation{"exk_1", "SUCCEEDED", 2, nil}, 0, 1, 0, 0},
		"said done, nothing paid":    {act("applied", "completed"), 0, none, 0, 0, 0, 1},
		"said failed, and paid":      {act("failed", "failed"), 10, once, 0, 0, 0, 1},
		"expired, and paid":          {act("expired", "not_submitted"), 10, once, 0, 0, 0, 1},
		"accepted, says nobody":      {act("accepted", "accepted"), 0, none, 0, 0, 1, 1},
		"not there":                  {api.Action{ID: "act_2", ExecutionKey: "exk_2", State: "applied"}, 0, none, 1, 0, 0, 0},
		"not there, and paid at all": {api.Action{ID: "act_2", ExecutionKey: "exk_2", State: "applied"}, 10, once, 2, 0, 0, 0},
	} {
		truth := paid{map[string]float64{"CH-1": c.paid}, map[string]operation{}}
		if c.operation.Key != "" {
			truth.operations["exk_1"] = c.operation
		}
		v := judge([]refund{{order: "CH-1", amount: 10, id: "act_1", key: "exk_1"}}, []api.Action{c.action}, truth)
		if v.lost != c.lost || v.doubled != c.doubled || v.unsettled != c.unsettled || v.overstated != c.overstated {
			t.Errorf("%s: lost %d, doubled %d, unsettled %d, overstated %d", name, v.lost, v.doubled, v.unsettled, v.overstated)
		}
	}
}
