package triage

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
)

// scales compare the two sides of one run's operations.
type scales struct {
	run     Run
	list    *contract.Contract  // the run's version: how the list was read
	tool    *contract.Contract  // the version of the operation's action
	version int                 // number of that
	by      *contract.Reconcile // what the two compare; nil when that version's operations are not listed
}

// weighed is what the comparison of one operation shows.
type weighed struct {
	class  Class // "" when it is not of the window
	why    string
	fields []FieldCompared
	says   string // as evidence about our action, see the Found constants; "" for nothing new
	proves action.Proof
}

// weigh compares one operation. Operations are the same when their keys are,
// and never because they look alike.
func (s scales) weigh(j Joined) weighed {
	switch {
	case j.Theirs == nil:
		return s.missing(j)
	case !j.InWindow && !s.within(*j.Theirs):
		return weighed{}
	case j.ActionID == "" && strings.HasPrefix(j.Key, "exk_"):
		return weighed{class: ClassTheirsOnly, why: DiffersUnknown}
	case j.ActionID == "", j.Tool != s.run.Tool, j.OwnKey != j.Key, s.by == nil:
		return weighed{class: ClassOthers}
	}
	reading := s.list.ReadListed(*j.Theirs)
	if j.State.In(action.Draft, action.Proposed, action.Confirmed, action.Rejected, action.Cancelled, action.Expired) {
		if reading.Outcome == action.Failure {
			return weighed{class: ClassMatched} // refused, and never sent from here
		}
		return weighed{class: ClassTheirsOnly, why: DiffersUnsent, says: saysOf(reading), proves: reading.Proves}
	}
	w := s.outcomes(j, reading)
	if reading.Outcome == action.Success && reading.Proves == action.ProvesCompleted {
		s.content(j, &w)
	}
	return w
}

// saysOf is what a reading says as evidence.
func saysOf(r contract.Reading) string {
	outcome, _ := outcomeOf(r)
	if outcome == action.FoundUnknown {
		return ""
	}
	return outcome
}

// within reports whether an operation belongs to the window.
func (s scales) within(l contract.Listed) bool {
	at, err := l.Moment()
	return err == nil && !at.Before(s.run.From) && at.Before(s.run.To)
}

// missing is what an operation of ours is that the business system does not
// list, though it lists what happened long enough before and after.
func (s scales) missing(j Joined) weighed {
	switch {
	case s.by == nil:
		return weighed{class: ClassOthers}
	case j.State.In(action.Executing, action.ResultUnknown):
		return weighed{class: ClassAwaiting, why: DiffersNotFinal}
	case !j.State.In(action.Accepted, action.Applied):
		return weighed{class: ClassMatched} // on neither side
	case s.run.AskedAt.Before(j.Sent.Add(s.by.Settle.Duration)): // every page was read after that
		return weighed{class: ClassAwaiting, why: DiffersYoung}
	}
	return weighed{class: ClassOursOnly, why: DiffersMissing, says: action.FoundNotExecuted}
}

// outcomes compares what became of an operation.
func (s scales) outcomes(j Joined, theirs contract.Reading) weighed {
	final := theirs.Outcome == action.Failure || theirs.Proves == action.ProvesCompleted || theirs.Outcome == action.Success && s.tool.Execution.Proves != action.ProvesCompleted
	says := saysOf(theirs)
	switch {
	case j.State.In(action.Executing):
		return weighed{class: ClassAwaiting, why: DiffersNotFinal}
	case says == "" && s.young(j):
		return weighed{class: ClassAwaiting, why: DiffersYoung}
	case says == "":
		return weighed{class: ClassMismatch, why: DiffersUnclear}
	case j.State == action.ResultUnknown && !final:
		return weighed{class: ClassAwaiting, why: DiffersNotFinal}
	case j.State == action.ResultUnknown: // found out here, if evidence alone can settle it
		return weighed{class: ClassAwaiting, why: DiffersNotFinal, says: says, proves: theirs.Proves}
	case j.State.In(action.Failed, action.Conflict):
		if theirs.Outcome == action.Failure {
			return weighed{class: ClassMatched}
		}
		return weighed{class: ClassMismatch, why: DiffersOutcome, says: says, proves: theirs.Proves}
	case theirs.Outcome == action.Failure:
		return weighed{class: ClassMismatch, why: DiffersOutcome, says: says}
	case j.State == action.Accepted && !final:
		return weighed{class: ClassAwaiting, why: DiffersNotFinal}
	case j.State == action.Accepted && s.tool.Execution.Proves == action.ProvesCompleted:
		return weighed{class: ClassMatched, says: says, proves: theirs.Proves} // they know more
	case final:
		return weighed{class: ClassMatched}
	case s.young(j):
		return weighed{class: ClassAwaiting, why: DiffersYoung}
	}
	return weighed{class: ClassMismatch, why: DiffersOutcome, says: action.FoundDiffers} // done here, and still to be done there
}

// young reports whether an operation may still change over there.
func (s scales) young(j Joined) bool {
	at, err := j.Theirs.Moment()
	return err != nil || s.run.AskedAt.Before(at.Add(s.by.Settle.Duration))
}

// content compares what was done with what was asked for.
func (s scales) content(j Joined, w *weighed) {
	differs := false
	for _, field := range slices.Sorted(maps.Keys(s.by.Fields)) {
		c := FieldCompared{Field: field, Theirs: j.Theirs.Fields[field]}
		c.Ours, _ = rule.Field(j.Payload, field)
		c.Same, c.Forms = rule.Same(c.Ours, c.Theirs, s.by.Fields[field])
		differs = differs || !c.Same
		w.fields = append(w.fields, c)
	}
	if c, known := s.currency(j); known {
		differs = differs || !c.Same
		w.fields = append(w.fields, c)
	}
	if at, err := j.Theirs.Moment(); err == nil && differentZone(at) {
		w.fields = append(w.fields, FieldCompared{Field: "at", Theirs: quoted(j.Theirs.At), Ours: quoted(at.UTC().Format(time.RFC3339Nano)), Same: true, Forms: []rule.Form{rule.FormZone}})
	}
	switch {
	case w.class == ClassAwaiting && j.State == action.Executing:
	case differs:
		w.class, w.says, w.proves = ClassMismatch, action.FoundDiffers, action.ProvesNothing
		if w.why != DiffersOutcome {
			w.why = DiffersFields
		}
	case j.Twice:
		w.class, w.why, w.says, w.proves = ClassMismatch, DiffersTwice, action.FoundDiffers, action.ProvesNothing
	}
}

func differentZone(at time.Time) bool {
	_, offset := at.Zone()
	return offset != 0
}

func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text: cannot fail
	return raw
}

// currency compares the currency that the contract states with theirs.
func (s scales) currency(j Joined) (FieldCompared, bool) {
	if s.by.Currency == "" || j.Theirs.Currency == "" {
		return FieldCompared{}, false
	}
	amounts := s.tool.Amounts(j.Payload)
	if len(amounts) == 0 || amounts[0].Currency == "" {
		return FieldCompared{}, false
	}
	return FieldCompared{Field: "currency", Ours: quoted(amounts[0].Currency), Theirs: quoted(j.Theirs.Currency), Same: amounts[0].Currency == j.Theirs.Currency}, true
}

// count adds one operation to the totals.
func (t *Totals) count(w weighed) {
	switch w.class {
	case ClassMatched:
		t.Matched++
	case ClassAwaiting:
		t.Awaiting++
	case ClassMismatch:
		t.Mismatch++
	case ClassOursOnly:
		t.OursOnly++
	case ClassTheirsOnly:
		t.TheirsOnly++
	case ClassOthers:
		t.Others++
	}
	if w.class != ClassMatched {
		return
	}
	once := map[rule.Form]bool{}
	for _, f := range w.fields {
		for _, form := range f.Forms {
			once[form] = true
		}
	}
	for form := range once {
		if t.Forms == nil {
			t.Forms = map[rule.Form]int64{}
		}
		t.Forms[form]++
	}
}
