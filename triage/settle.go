package triage

import (
	"context"
	"fmt"

	"countersign/action"
	"countersign/action/rule"
	"countersign/people"
)

// CaseStore is where cases are found and who may settle them is known.
type CaseStore interface {
	// Person returns a person as they are now; NotFound when there is none.
	Person(ctx context.Context, id string) (people.Person, error)
	// CaseAction returns the id of the action that a case, open or closed,
	// belongs to, or "".
	CaseAction(ctx context.Context, caseID string) (string, error)
	// ByID returns actions by their ids, as lists have them.
	ByID(ctx context.Context, ids ...string) ([]action.Action, error)
}

// Cases is what people do about unknown outcomes.
type Cases struct {
	ledger    action.Ledger
	store     CaseStore
	catalogue *rule.Catalogue
}

// NewCases makes the service.
func NewCases(l action.Ledger, s CaseStore, c *rule.Catalogue) *Cases {
	return &Cases{ledger: l, store: s, catalogue: c}
}

// Who is a person who is signed in.
type Who struct {
	ID     string
	Method string // how they had signed in
}

// Seen is a case as a person saw it. Nothing is recorded on a case that is not
// like that any more: StaleRevision.
type Seen struct {
	CaseID       string
	Version      int64 // of the action
	SnapshotHash string
}

// See returns how a case of an action looks now.
func See(a action.Action) Seen {
	s := Seen{Version: a.Version, SnapshotHash: a.SnapshotHash()}
	if a.Case != nil {
		s.CaseID = a.Case.ID
	}
	return s
}

// op names a command by who gave it on what: giving it twice is once.
func (s Seen) op(what string, who Who) string {
	return fmt.Sprintf("%s:%s:%d:%s", what, s.CaseID, s.Version, who.ID)
}

// change runs a person's command on a case. What they may is read anew for
// every try.
func (s *Cases) change(ctx context.Context, who Who, caseID string, make func(snap action.Snapshot, by action.By) (action.Command, error)) (action.Snapshot, error) {
	id, err := s.store.CaseAction(ctx, caseID)
	if err != nil {
		return action.Snapshot{}, err
	}
	if id == "" {
		return action.Snapshot{}, noCase()
	}
	return action.Change(ctx, s.ledger, id, func(snap action.Snapshot) (action.Command, error) {
		person, err := s.store.Person(ctx, who.ID)
		if err != nil {
			return nil, err
		}
		subject := subjectOf(snap.Action)
		if !people.PersonViewer(person).Sees(subject) {
			return nil, noCase()
		}
		if err := people.May(person, people.ToSettle, subject); err != nil {
			return nil, err
		}
		snap.Rests[person.Subject()] = person.Version
		return make(snap, person.As(people.RoleOps, who.Method))
	})
}

// Find reads the action that a case belongs to, if the viewer may see it.
func (s *Cases) Find(ctx context.Context, viewer people.Viewer, caseID string) (action.Snapshot, error) {
	id, err := s.store.CaseAction(ctx, caseID)
	if err != nil {
		return action.Snapshot{}, err
	}
	if id == "" {
		return action.Snapshot{}, noCase()
	}
	snap, err := s.ledger.Snapshot(ctx, id)
	if err == nil && !viewer.Sees(subjectOf(snap.Action)) {
		err = noCase()
	}
	return snap, err
}

// Listed is the action of Find as lists have it: one that cannot be read is there
// as its row has it.
func (s *Cases) Listed(ctx context.Context, viewer people.Viewer, caseID string) (action.Action, error) {
	id, err := s.store.CaseAction(ctx, caseID)
	if err != nil {
		return action.Action{}, err
	}
	found, err := s.store.ByID(ctx, id)
	if err != nil {
		return action.Action{}, err
	}
	if len(found) == 0 || !viewer.Sees(subjectOf(found[0])) {
		return action.Action{}, noCase()
	}
	return found[0], nil
}

func subjectOf(a action.Action) people.Subject {
	return people.Subject{Tool: a.Tool, Scope: a.Scope, Entry: a.Entry, ActorID: a.Actor.ID, ClientID: a.Client.ID}
}

func noCase() error {
	return action.Refuse(action.NotFound, "There is no such case, or you may not see it.").Because("case")
}

// Take takes a case, or keeps it for longer. AlreadyClaimed names who has it.
func (s *Cases) Take(ctx context.Context, who Who, seen Seen) (action.Snapshot, error) {
	return s.change(ctx, who, seen.CaseID, func(_ action.Snapshot, by action.By) (action.Command, error) {
		return action.TakeCase{Op: seen.op("take", who), By: by, CaseID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash}, nil
	})
}

// HandOver gives a case to another person who may settle it, or with "" back.
func (s *Cases) HandOver(ctx context.Context, who Who, seen Seen, to string) (action.Snapshot, error) {
	return s.change(ctx, who, seen.CaseID, func(snap action.Snapshot, by action.By) (action.Command, error) {
		cmd := action.HandOver{Op: seen.op("hand-over", who) + ":" + to, By: by, CaseID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash, To: to}
		if to == "" {
			return cmd, nil
		}
		other, err := s.receiver(ctx, subjectOf(snap.Action), to)
		if err != nil {
			return nil, err
		}
		cmd.ToName, snap.Rests[other.Subject()] = other.Name, other.Version
		return cmd, nil
	})
}

// receiver is somebody who may settle cases of this.
func (s *Cases) receiver(ctx context.Context, subject people.Subject, id string) (people.Person, error) {
	person, err := s.store.Person(ctx, id)
	if action.IsCode(err, action.NotFound) {
		return person, action.Refuse(action.InvalidArgument, "There is no such person.").At("/person", "must be somebody who may settle this case")
	}
	if err != nil {
		return person, err
	}
	if people.May(person, people.ToSettle, subject) != nil {
		return person, action.Refuse(action.InvalidArgument, person.Name+" may not settle this case.").Because("receiver").
			With("name", person.Name).At("/person", "must be somebody who may settle this case")
	}
	return person, nil
}

// AskAgain has the business system asked by key again.
func (s *Cases) AskAgain(ctx context.Context, who Who, seen Seen) (action.Snapshot, error) {
	return s.change(ctx, who, seen.CaseID, func(_ action.Snapshot, by action.By) (action.Command, error) {
		return action.AskAgain{Op: seen.op("ask", who), By: by, CaseID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash}, nil
	})
}

// SendAgain has an executor make the one retry, under the same key. See
// action.Snapshot.MaySendAgain for when that is safe.
func (s *Cases) SendAgain(ctx context.Context, who Who, seen Seen) (action.Snapshot, error) {
	return s.change(ctx, who, seen.CaseID, func(_ action.Snapshot, by action.By) (action.Command, error) {
		return action.SendAgain{Op: seen.op("send-again", who), By: by, CaseID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash}, nil
	})
}

// Finding is what a person says became of it, and what that rests on.
type Finding struct {
	Verdict      string
	EvidenceKind string
	EvidenceRef  string
	Note         string
}

// Bounds of what people write, in bytes.
const (
	maxEvidenceRef = 256
	maxNote        = 2000
)

// Settle records a verdict. Where the contract wants two people, the first
// one's waits, and the same from another person confirms it.
func (s *Cases) Settle(ctx context.Context, who Who, seen Seen, f Finding) (action.Snapshot, error) {
	if err := texts(f.EvidenceRef, f.Note); err != nil {
		return action.Snapshot{}, err
	}
	content := action.ContentHash([]byte(f.Verdict + "\n" + f.EvidenceKind + "\n" + f.EvidenceRef + "\n" + f.Note))
	return s.change(ctx, who, seen.CaseID, func(_ action.Snapshot, by action.By) (action.Command, error) {
		return action.Settle{Op: seen.op("settle", who) + ":" + content[len("sha256:"):][:16], By: by, CaseID: seen.CaseID, Version: seen.Version,
			Verdict: action.Verdict{Verdict: f.Verdict, EvidenceKind: f.EvidenceKind, EvidenceRef: f.EvidenceRef, Note: f.Note, SnapshotHash: seen.SnapshotHash}}, nil
	})
}

// Confirm is a second person's answer to the verdict that waits.
func (s *Cases) Confirm(ctx context.Context, who Who, seen Seen, agree bool, note string) (action.Snapshot, error) {
	if err := texts("", note); err != nil {
		return action.Snapshot{}, err
	}
	return s.change(ctx, who, seen.CaseID, func(_ action.Snapshot, by action.By) (action.Command, error) {
		return action.Confirm{Op: seen.op(fmt.Sprint("confirm-", agree), who), By: by, CaseID: seen.CaseID, Version: seen.Version,
			SnapshotHash: seen.SnapshotHash, Agree: agree, Note: note}, nil
	})
}

func texts(ref, note string) error {
	r := action.Refuse(action.InvalidArgument, "A text is too long.")
	if len(ref) > maxEvidenceRef {
		r.At("/evidence_ref", fmt.Sprintf("must have at most %d bytes", maxEvidenceRef))
	}
	if len(note) > maxNote {
		r.At("/note", fmt.Sprintf("must have at most %d bytes", maxNote))
	}
	if len(r.Errors) > 0 {
		return r
	}
	return nil
}

// Result is what became of one item of a bulk command.
type Result struct {
	Seen   Seen
	Action action.Action // as it is after; zero when it was refused
	Err    error         // a *action.Refusal, or nil
}

// MaxBulk is how many cases one bulk command takes.
const MaxBulk = 1000

// AskAll asks again about exactly the cases of a list, each as it was seen.
// What came meanwhile is not touched.
func (s *Cases) AskAll(ctx context.Context, who Who, items []Seen) ([]Result, error) {
	return bulk(items, func(seen Seen) (action.Snapshot, error) { return s.AskAgain(ctx, who, seen) })
}

// TakeAll takes exactly the cases of a list, each as it was seen.
func (s *Cases) TakeAll(ctx context.Context, who Who, items []Seen) ([]Result, error) {
	return bulk(items, func(seen Seen) (action.Snapshot, error) { return s.Take(ctx, who, seen) })
}

// bulk runs a command on each item by itself: one that is refused keeps no
// other waiting.
func bulk(items []Seen, do func(Seen) (action.Snapshot, error)) ([]Result, error) {
	if len(items) > MaxBulk {
		return nil, action.Refuse(action.TooLarge, fmt.Sprintf("At most %d cases at a time.", MaxBulk))
	}
	results := make([]Result, 0, len(items))
	done := map[string]bool{}
	for _, seen := range items {
		if done[seen.CaseID] {
			continue
		}
		done[seen.CaseID] = true
		snap, err := do(seen)
		if err != nil {
			err = action.AsRefusal(err)
		}
		r := Result{Seen: seen, Err: err}
		if err == nil {
			r.Action = snap.Action
		}
		results = append(results, r)
	}
	return results, nil
}
