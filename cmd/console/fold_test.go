package main

import (
	"database/sql"
	"strings"
	"testing"

	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestFoldCommand(t *testing.T) {
	s := stage.New(t, storetest.New(t))
	env := environment{"DATABASE_URL": storetest.Owner(s.DSN)}
	a, b := s.Confirmed(stage.SetPrice, stage.Product()), s.Confirmed(stage.SetPrice, stage.Product())
	if out := works(t, env, "", "fold", "--check"); !strings.Contains(out, "2 actions, 4 events, 0 differences") {
		t.Errorf("it prints %s", out)
	}
	owner, err := sql.Open("postgres", env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := owner.Exec(`UPDATE actions SET state = 'applied' WHERE id = $1`, a.ID); err != nil {
		t.Fatal(err)
	}
	code, out, errs := console(t, env, "", "fold", "--check")
	if want := a.ID + ` state: the row says "applied", the events say "confirmed"`; code != exitFailed || !strings.Contains(out, want) || !strings.Contains(errs, "1 differences") {
		t.Errorf("ended with %d\n%s%s", code, out, errs)
	}
	works(t, env, "", "fold", "--check", "--id", b.ID)
	if errs := fails(t, env, "", "fold", "--check", "--id", "act_nosuch"); !strings.Contains(errs, "no action act_nosuch") {
		t.Errorf("it says %q", errs)
	}
	if code, _, errs := console(t, env, "", "fold"); code != exitUsage || !strings.Contains(errs, "--check is missing") {
		t.Errorf("ended with %d: %s", code, errs)
	}
}
