// Package stage gives tests a console without its pages: people, programs and
// contracts in a real database, and actions in any state they need.
package stage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/store"
	"countersign/triage"
)

// Console is one process over a database, without its pages.
type Console struct {
	DB         *store.DB
	Catalogue  *rule.Catalogue
	People     *people.Service
	Approvals  *approvals.Service
	Triage     *triage.Service
	Cases      *triage.Cases
	Callbacks  *triage.Callbacks
	Reconciler *triage.Reconciler
}

// Stage is a console with people and programs, and the contracts of Tools.
type Stage struct {
	*Console
	T   testing.TB
	DSN string

	Admin, Mia, Ken people.Person // Mia and Ken are support; Admin owns the programs
	Agent, Executor people.Client
	ops             people.Person
}

// secret is what every process of a test console shares.
const secret = "a secret of 32 bytes for the tests"

// New sets up a console with its cast on an empty database.
func New(t testing.TB, dsn string) *Stage {
	t.Helper()
	s := &Stage{T: t, DSN: dsn}
	s.Console = s.Open(dsn, store.Options{})
	s.Admin = s.Person("admin", people.RoleAdmin)
	s.Mia = s.Person("mia", people.RoleSupport)
	s.Ken = s.Person("ken", people.RoleSupport)
	s.Agent = s.Client("agent", s.Admin, people.RoleProposer)
	s.Executor = s.Client("executor", s.Admin, people.RoleExecutor)
	for _, source := range Tools() {
		s.Tool(source)
	}
	return s
}

// Open starts another process: its own pool, caches and services.
func (s *Stage) Open(dsn string, o store.Options) *Console {
	s.T.Helper()
	db, err := store.Open(context.Background(), dsn, o)
	s.must(err)
	s.T.Cleanup(func() { db.Close() })
	return s.Over(db, db)
}

// Over makes the services of a process whose actions are kept in ledger.
func (s *Stage) Over(db *store.DB, ledger approvals.Ledger) *Console {
	s.T.Helper()
	signer, err := approvals.NewSigner(context.Background(), db, []byte(secret), "https://console.example", "executors")
	s.must(err)
	catalogue := rule.NewCatalogue(db)
	kept := struct {
		approvals.Ledger
		linked
	}{ledger, db}
	callbacks, err := triage.NewCallbacks(kept, db, catalogue, []byte(secret))
	s.must(err)
	return &Console{DB: db, Catalogue: catalogue, People: people.New(db),
		Approvals: approvals.New(ledger, db, catalogue, db, signer, approvals.DefaultMaxOpen), Triage: triage.New(kept, catalogue),
		Cases: triage.NewCases(ledger, db, catalogue), Callbacks: callbacks,
		Reconciler: triage.NewReconciler(kept, db, db, catalogue)}
}

// linked is what triage reads past a ledger that a test puts in the way.
type linked interface {
	Linked(ctx context.Context, ids ...string) ([]action.Action, error)
	Concluded(ctx context.Context, after triage.Conclusion, limit int) ([]triage.Conclusion, error)
	Client(ctx context.Context, id string) (people.Client, error)
}

func (s *Stage) must(err error) {
	s.T.Helper()
	if err != nil {
		r := action.AsRefusal(err)
		s.T.Fatalf("setting the stage: %v (%v)", err, r.Errors)
	}
}

// System is what the command line does.
func System(op string) people.Command {
	return people.Command{Op: op, By: action.By{Kind: action.BySystem}}
}

// Person makes somebody with roles, for all tools and scopes.
func (s *Stage) Person(username string, roles ...string) people.Person {
	s.T.Helper()
	return s.PersonWith(username, people.Grants{Roles: roles})
}

// PersonWith makes somebody with limits.
func (s *Stage) PersonWith(username string, g people.Grants) people.Person {
	s.T.Helper()
	name := strings.ToUpper(username[:1]) + username[1:]
	p, err := s.People.CreatePerson(context.Background(), System("create:"+username), people.NewPerson{Username: username, Name: name, Grants: g})
	s.must(err)
	return p
}

// Grant changes what somebody is trusted with.
func (s *Stage) Grant(p people.Person, g people.Grants) people.Person {
	s.T.Helper()
	p, err := s.People.SetGrants(context.Background(), System(action.NewID("req")), p.ID, g)
	s.must(err)
	return p
}

// Client makes a program with roles, for all tools, scopes and entries.
func (s *Stage) Client(name string, owner people.Person, roles ...string) people.Client {
	s.T.Helper()
	return s.ClientWith(name, owner, people.ClientGrants{Roles: roles})
}

// ClientWith makes a program with limits.
func (s *Stage) ClientWith(name string, owner people.Person, g people.ClientGrants) people.Client {
	s.T.Helper()
	c, err := s.People.CreateClient(context.Background(), System("create:"+name), people.NewClient{Name: name, Owner: owner.ID, ClientGrants: g})
	s.must(err)
	return c
}

// Tool stores a contract.
func (s *Stage) Tool(source string) *rule.Tool {
	s.T.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(source, "name: "), "\n")
	t, _, err := s.Catalogue.Save(context.Background(), name, []byte(source), action.By{Kind: action.BySystem})
	s.must(err)
	return t
}

// The contracts that every stage has.
const (
	SetPrice  = "shop.set_price"  // one support approval; completed when it says so
	BigPrice  = "shop.big_price"  // two support approvals
	TwoRoles  = "shop.two_roles"  // one support and one finance approval
	AskOther  = "shop.ask_other"  // proves acceptance at most
	ReadBack  = "shop.read_back"  // completed only when read back
	ReadPrice = "shop.read_price" // reads: nobody has to approve
	Small     = "shop.small"      // a write that nobody has to approve
)

// Tools returns the contracts that every stage has.
func Tools() []string {
	return []string{
		Contract(SetPrice, "", ""),
		Contract(BigPrice, `{ when: "true", role: support, approvals: 2 }`, ""),
		Contract(TwoRoles, `{ when: "true", role: support, approvals: 1 }, { when: "true", role: finance, approvals: 1 }`, ""),
		Contract(AskOther, "", "proves: accepted"),
		Contract(ReadBack, "", `postconditions: [ { read: shop.read_price, field: /price, expect: "value == payload.new_price" } ]`),
		Contract(Small, `{ when: "true", role: support, approvals: 0 }`, ""),
		`name: ` + ReadPrice + `
mode: read
input_schema: { type: object, properties: { product_id: { type: string } } }
target: { type: product, id: /product_id, scope: shop, block: none }
http: { method: GET, path: "/products/{product_id}" }
`,
	}
}

// Contract returns a contract that sets the price of a product, with its
// approval rules and further lines of its execution part.
func Contract(name, rules, execution string) string {
	if !strings.Contains(execution, "proves:") {
		execution = "proves: completed\n  " + execution
	}
	return fmt.Sprintf(`name: %s
mode: write
input_schema:
  type: object
  required: [product_id]
  properties: { product_id: { type: string }, new_price: { type: number } }
target: { type: product, id: /product_id, scope: shop }
object_version: optional
approval: { ttl: 1h, confirmation_ttl: 30m, rules: [ %s ] }
http: { method: POST, path: "/products/{product_id}/price", body: payload }
execution:
  retry: same_key
  key_lifetime: 24h
  definite_failures: [400, 404, 422]
  conflicts: [412]
  lease: 10m
  fence_after: 60s
  deadline: 1h
  %s
`, name, rules, execution)
}

// Proposal returns a request for a tool about a product, with a key of its own.
func Proposal(tool, product string, price float64) approvals.Proposal {
	return approvals.Proposal{Key: action.NewID("key"), Tool: tool, Actor: action.Actor{ID: "u-17", Name: "Lin"},
		Payload: fmt.Appendf(nil, `{"product_id":%q,"new_price":%v}`, product, price), Reason: "the season is over"}
}

// Product returns the name of a product that no other test talks about.
func Product() string { return action.NewID("sku") }

// Seconds returns a span for a proposal's life.
func Seconds(n int) *time.Duration {
	d := time.Duration(n) * time.Second
	return &d
}
