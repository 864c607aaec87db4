package web

import (
	"encoding/json"
	"time"
)

// Reading is what one read-only query answered.
type Reading struct {
	At      time.Time
	Source  Text // who was asked
	Tool    string
	Version Text            // of the object; empty when it shows none
	Body    json.RawMessage // nil when it failed or was removed
	Failed  Text            // why there is no answer
	Other   bool            // it is about another object or operation: kept, not compared
	Hash    string
}

// Snapshot is a reading with its difference to the one before by the same tool.
type Snapshot struct {
	Reading
	First bool       // nothing before to compare with
	Diff  FieldTable // TableSnapshot: changed fields only, or every field of the first
}

// NewSnapshots compares every reading with the one before; how says what the
// fields mean (Label, Money, Mask, Names, Order).
func NewSnapshots(readings []Reading, how FieldSource) []Snapshot {
	last := map[string]json.RawMessage{}
	var out []Snapshot
	for _, r := range readings {
		s := Snapshot{Reading: r}
		if len(r.Body) > 0 {
			before, seen := last[r.Tool]
			seen = seen && !r.Other
			how.Kind, how.Payload, how.Now = TableSnapshot, r.Body, nil
			s.First = !seen
			how.Left = Source{NotRead: !seen}
			if seen {
				how.Now = Leaves(before)
			}
			s.Diff = NewFields(how)
			if seen {
				s.Diff.Fields = changedOnly(s.Diff.Fields)
			}
			if !r.Other {
				last[r.Tool] = r.Body
			}
		}
		out = append(out, s)
	}
	return out
}

func changedOnly(fs []Field) []Field {
	var out []Field
	for _, f := range fs {
		if f.Group == Changed {
			f.notes = nil // how far numbers are apart says nothing between two readings
			out = append(out, f)
		}
	}
	return out
}
