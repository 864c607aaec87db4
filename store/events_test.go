package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/people"
	"countersign/store/stage"
	"countersign/triage"
)

func TestTheApplicationCannotChangeEvents(t *testing.T) {
	s := set(t)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	for _, query := range []string{
		`UPDATE events SET data = '{}' WHERE subject = '` + a.ID + `'`,
		`UPDATE events SET op = op || '!'`,
		`DELETE FROM events WHERE subject = '` + a.ID + `'`,
		`TRUNCATE events`,
		`TRUNCATE events CASCADE`,
		`ALTER TABLE events DROP COLUMN data`,
		`ALTER TABLE events DISABLE TRIGGER ALL`,
		`DROP TABLE events`,
		`TRUNCATE actions`,
		`UPDATE bodies SET content = ''`,
		`DELETE FROM actions`,
		`DELETE FROM tools`,
		`UPDATE tool_versions SET source = ''`,
		`DELETE FROM tool_versions`,
		`UPDATE signing_keys SET public_key = ''`,
		`DELETE FROM persons`,
		`DELETE FROM clients`,
		`CREATE TABLE own (n int)`,
	} {
		_, err := s.DB.Pool().Exec(query)
		if err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", query, err)
		}
	}
	if got := s.Read(a.ID); got.Version != a.Version {
		t.Errorf("version %d became %d", a.Version, got.Version)
	}
}

// B12: a transition that fails leaves neither its state nor its event,
// whichever of its writes fails.
func TestB12_StateAndEventAreWrittenTogetherOrNotAtAll(t *testing.T) {
	s := set(t)
	db := owner(t, s)
	_, err := db.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$`)
	must(t, err)
	for _, table := range []string{"actions", "events", "bodies"} {
		for _, c := range commands() {
			t.Run(table+"/"+c.name, func(t *testing.T) {
				s.T = t
				id, run := c.ready(s)
				count := `SELECT (SELECT count(*) FROM actions) || ' ' || (SELECT count(*) FROM events) || ' ' || (SELECT count(*) FROM bodies)`
				before := one[string](t, db, count)
				_, err := db.Exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION refuse()`, table))
				must(t, err)
				_, failed := run(s.Console)
				_, err = db.Exec(`DROP TRIGGER refuse ON ` + table)
				must(t, err)
				if failed == nil {
					if table != "bodies" {
						t.Fatal("it went through")
					}
					return // this one has no content
				}
				if after := one[string](t, db, count); after != before {
					t.Errorf("rows before: %s, after: %s", before, after)
				}
				half(t, s, c, id)
				first, err := run(s.Console)
				must(t, err)
				theSame(t, s, c, id, first, run)
			})
		}
	}
}

// B12: the other way round, an op that has an event cannot move the state again.
func TestB12_AnOpMovesTheStateOnce(t *testing.T) {
	s := set(t)
	a := s.Confirmed(stage.SetPrice, stage.Product())
	snap, err := s.DB.Snapshot(background(), a.ID)
	must(t, err)
	events, _, err := s.DB.Events(background(), a.ID)
	must(t, err)
	next, err := action.Decide(snap, action.Cancel{Op: "cancel:x", By: s.Agent.By()})
	must(t, err)
	for _, used := range events {
		next.Event.Op = used.Op
		if written, err := s.DB.Append(background(), next); written || err == nil {
			t.Errorf("the op %s was written again: %v", used.Op, err)
		}
	}
	next.Event.Op, next.Event.Version, next.Next.Version = "cancel:x", 2, 2
	if written, err := s.DB.Append(background(), next); written || err != nil {
		t.Errorf("a stale version was written: %v, %v", written, err)
	}
	if got := s.Read(a.ID); got.State != action.Confirmed || got.Version != a.Version {
		t.Errorf("%s, version %d", got.State, got.Version)
	}
	if result, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("%+v, differences: %q", result, found)
	}
}

func TestATransitionIsOneEvent(t *testing.T) {
	s := set(t)
	for _, c := range commands() {
		t.Run(c.name, func(t *testing.T) {
			s.T = t
			id, run := c.ready(s)
			var before int64
			if id != "" {
				before = s.Read(id).Version
			}
			first, err := run(s.Console)
			must(t, err)
			if id == "" {
				id = first[:30]
			}
			events, _, err := s.DB.Events(background(), id)
			must(t, err)
			a := s.Read(id)
			if a.Version != before+1 || int64(len(events)) != a.Version {
				t.Errorf("version %d after %d, %d events", a.Version, before, len(events))
			}
			e := events[len(events)-1]
			if e.Kind != c.kind || e.To != a.State || e.At.IsZero() || e.By.Kind == "" || e.Subject != id {
				t.Errorf("recorded %+v", e)
			}
		})
	}
}

// Text from outside that PostgreSQL cannot keep is refused like any other
// mistake, and keeps nothing.
func TestTextThatCannotBeKeptIsRefused(t *testing.T) {
	s := set(t)
	for name, edit := range map[string]func(*approvals.Proposal){
		"NUL in the actor":           func(p *approvals.Proposal) { p.Actor.ID = "u\x00" },
		"bad UTF-8 in the actor":     func(p *approvals.Proposal) { p.Actor.ID = "u\xff" },
		"NUL in the target":          func(p *approvals.Proposal) { p.Payload = []byte(`{"product_id":"p\u0000"}`) },
		"NUL in the task":            func(p *approvals.Proposal) { p.TaskID = "t\x00" },
		"NUL in the version":         func(p *approvals.Proposal) { v := "v\x00"; p.ObjectVersion = &v },
		"NUL in the key":             func(p *approvals.Proposal) { p.Key = "k\x00" },
		"NUL in the tool":            func(p *approvals.Proposal) { p.Tool = "t\x00" },
		"a target too long":          func(p *approvals.Proposal) { p.Payload = fmt.Appendf(nil, `{"product_id":%q}`, noise(20_000)) },
		"an actor too long":          func(p *approvals.Proposal) { p.Actor.ID = noise(20_000) },
		"a key too long":             func(p *approvals.Proposal) { p.Key = noise(20_000) },
		"a link that is not an id":   func(p *approvals.Proposal) { p.Links.Compensates = "x\x00" },
		"a request id with a NUL":    func(p *approvals.Proposal) { p.RequestID = "r\x00" },
		"an entry that is too long":  func(p *approvals.Proposal) { p.Entry = noise(20_000) },
		"a version that is too long": func(p *approvals.Proposal) { v := noise(20_000); p.ObjectVersion = &v },
	} {
		p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
		edit(&p)
		_, _, err := s.Approvals.Propose(background(), s.Agent, p)
		if err != nil && (action.AsRefusal(err).Code == action.Internal || action.AsRefusal(err).Code == action.OutcomeUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := s.DB.Actions(background(), approvals.Filter{Viewer: people.Viewer{All: true}, Ref: "x\x00", Limit: 9})
	s.Refused(err, action.InvalidArgument)
	if result, found := checked(t, s.DB, ""); len(found) > 0 {
		t.Errorf("%+v, differences: %q", result, found)
	}
}

// noise is text that cannot be compressed into an index.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(action.NewRef())
	}
	return b.String()[:n]
}

// A secret that is written down again, because the answer was lost, is there once
// and is no conflict.
func TestACallbackSecretIsAddedOnce(t *testing.T) {
	s := set(t)
	secret := triage.CallbackSecret{ID: action.NewID("sec"), Tool: stage.SetPrice, Sealed: []byte("sealed")}
	for range 2 {
		must(t, s.DB.AddCallbackSecret(background(), secret, new(time.Duration), s.Admin.As(people.RoleAdmin, people.ByPassword)))
	}
	if kept, _, err := s.DB.CallbackSecrets(background(), stage.SetPrice); err != nil || len(kept) != 1 || kept[0].EndsAt != nil {
		t.Errorf("%+v, %v", kept, err)
	}
	if n := one[int](t, owner(t, s), `SELECT count(*) FROM events WHERE subject = 'callbacks:' || $1`, stage.SetPrice); n != 1 {
		t.Errorf("%d events", n)
	}
}
