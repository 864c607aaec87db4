package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// TableKind says what the two value columns of a field table mean.
type TableKind string

// whole reports whether the left side is the whole other side, so that what it
// lacks is absent and not unread.
func (k TableKind) whole() bool {
	return k == TableStale || k == TableVersions || k == TableSnapshot
}

// The field tables there are.
const (
	TableDecide   TableKind = "decide"   // Now, After
	TableDone     TableKind = "done"     // Before, After
	TableAsked    TableKind = "asked"    // Before, Asked for, and Later where it was read
	TableStale    TableKind = "stale"    // You saw, Current
	TableVersions TableKind = "versions" // an older and a newer version
	TableCase     TableKind = "case"     // Expected, Now
	TableSnapshot TableKind = "snapshot" // an earlier and a later reading
)

// Source says where a column of a field table comes from. The zero Source
// says nothing.
type Source struct {
	NotRead  bool      // nobody read anything
	NotYet   bool      // nobody did so far, and somebody will
	Missed   Missed    // how often it was read in vain
	Name     Text      // "catalogue"
	At       time.Time // when it was read
	ReadBack bool      // read after the action, to prove it
	Revision int       // of a stale proposal
	Version  int       // of a contract
	Supposed bool      // what would stand if it had happened
}

// Group says in which part of the table a field stands.
type Group int

// The groups in the order in which they are shown.
const (
	Changed Group = iota
	Same
	Unread // nothing to compare with
	Known  // read before people decide, and not in the payload
)

// Field is one row: a label, what stands now and what would stand after.
type Field struct {
	Label Text
	Path  Text // the payload's own name for it, as in items[0].sku
	Raw   bool // the label only writes that name apart: nobody gave it another
	Left  Value
	Right Value
	Third Value // of TableAsked
	Group Group
	Claim Claim
	notes []Msg // under the right value
}

// Claim marks a field in which the program says what stands now.
type Claim int

// How a claim compares with what was read.
const (
	NoClaim        Claim = iota
	ClaimUnchecked       // nothing was read
	ClaimAgrees
	ClaimDiffers
)

// FieldTable is every field of a payload, changed ones first.
type FieldTable struct {
	Kind   TableKind
	Left   Source
	Right  Source
	Third  Source // of TableAsked; zero when nothing was read later
	Fields []Field
	Full   string // where long values stand in full; "" when they do here
	More   int    // fields that stand only there
	Unsaid int    // what was read beside the payload and has no row
}

// Head is the beginning of a table, with where the rest and long values stand.
// There is no approving on a page that shows it.
func (t FieldTable) Head(most int, full string) FieldTable {
	t.Full = full
	if t.More = len(t.Fields) - most; t.More > 0 {
		t.Fields = t.Fields[:most]
	}
	return t
}

// FieldSource is what NewFields builds a table from. Keys of the maps are JSON
// Pointers into the payload.
type FieldSource struct {
	Kind    TableKind
	Payload []byte                     // a JSON object
	Now     map[string]json.RawMessage // what stands now, where something was read; for TableStale and TableVersions the whole other side
	Label   map[string]Text
	Money   map[string]Money // Currency and MinorUnits; Amount is ignored
	Mask    []string         // hidden with all below; "*" stands for any one key or index
	Claims  map[string]json.RawMessage
	Names   []string // ids, names and targets, where look-alike letters matter
	Order   []string // pointers in the order of the tool's schema; others follow
	Left    Source
	Right   Source
	Later   map[string]json.RawMessage // what was read later, for TableAsked
	Third   Source
	Beside  *Beside

	names map[string]bool
}

// Beside is what was read before people decide, where the payload does not say
// it too: they decide on it as well.
type Beside struct {
	Read     FieldSource                // Payload is what was read, as far as it may be seen
	Compared map[string]bool            // pointers that a field of the payload is compared with
	Promised map[string]json.RawMessage // what stands there if the action succeeds
	Shown    bool                       // it has succeeded, and reading back has shown that
	Asked    bool                       // it is over or under way: what a success promises is what was asked for
	Later    map[string]json.RawMessage // what was read since it was sent, with the same tool
}

// mostBeside is how many rows of it a table shows: all of it stands with the
// readings.
const mostBeside = 40

// NewFields lays a payload out as a table: one row per leaf, none left out,
// changed rows first. An unreadable payload gives one row with its text.
func NewFields(s FieldSource) FieldTable {
	t := FieldTable{Kind: s.Kind, Left: s.Left, Right: s.Right, Third: s.Third}
	if t.Kind == "" {
		t.Kind = TableDecide
	}
	s.names = map[string]bool{}
	for _, pointer := range s.Names {
		s.names[pointer] = true
	}
	leaves := leavesOf(s.Payload)
	slices.SortStableFunc(leaves, func(a, b leaf) int { return s.rank(a.pointer) - s.rank(b.pointer) })
	for _, l := range leaves {
		t.Fields = append(t.Fields, s.field(l))
	}
	if t.Kind.whole() && s.Now != nil {
		t.Fields = append(t.Fields, s.gone(t.Fields)...)
	}
	if t.Kind == TableVersions { // who compares contracts reads their own words
		for i := range t.Fields {
			t.Fields[i].Label, t.Fields[i].Raw = t.Fields[i].Path, true
		}
	}
	tellApart(t.Fields)
	if s.Beside != nil {
		beside := s.Beside.fields()
		tellApart(beside)
		t.Unsaid = max(0, len(beside)-mostBeside)
		t.Fields = append(t.Fields, beside[:len(beside)-t.Unsaid]...)
	}
	slices.SortStableFunc(t.Fields, func(a, b Field) int { return int(a.Group) - int(b.Group) })
	return t
}

func (s FieldSource) field(l leaf) Field {
	f := s.named(l.pointer, l.path)
	f.Right, f.Group = s.value(l.pointer, l.value), Unread
	f.Right.words = !f.Raw
	if raw, read := s.Now[l.pointer]; read && !s.masked(l.pointer) {
		f.Left = s.value(l.pointer, decodeAny(raw))
		f.Left.words = !f.Raw
		f.Group = Same
		if !f.Left.equal(f.Right) {
			f.Group = Changed
			f.notes = append(f.notes, s.apart(l.pointer, f.Left, f.Right)...)
		}
	} else if read {
		f.Left = HiddenValue()
	} else if s.Kind.whole() && s.Now != nil {
		f.Left, f.Group = AbsentValue(), Changed
	}
	if raw, read := s.Later[l.pointer]; read {
		f.Third = s.value(l.pointer, decodeAny(raw))
		f.Third.words = !f.Raw
	}
	if m := f.Right; m.kind == valueMoney && m.money.Currency == "" {
		f.notes = append(f.notes, m.money.unstated())
	}
	f.claim(s, l.pointer)
	return f
}

// rank is the place that the schema gives a pointer or what is above it.
func (s FieldSource) rank(pointer string) int {
	for i, p := range s.Order {
		if pointer == p || strings.HasPrefix(pointer, p+"/") {
			return i
		}
	}
	return len(s.Order)
}

func (f *Field) claim(s FieldSource, pointer string) {
	raw, claims := s.Claims[pointer]
	if !claims || s.masked(pointer) {
		return
	}
	if len(raw) == 0 {
		f.Claim = ClaimUnchecked
		f.notes = append(f.notes, msg("claim.unchecked"))
		return
	}
	read := s.value(pointer, decodeAny(raw))
	f.Left, f.Group, f.Claim = read, Same, ClaimAgrees
	f.notes = []Msg{msg("claim.agrees")}
	if !read.equal(f.Right) {
		f.Claim, f.Group = ClaimDiffers, Changed
		f.notes = []Msg{msg("claim.differs")}
	}
}

// gone lists what only the other side has.
func (s FieldSource) gone(have []Field) []Field {
	present := map[string]bool{}
	for _, l := range leavesOf(s.Payload) {
		present[l.pointer] = true
	}
	var out []Field
	for _, p := range sortedKeys(s.Now) {
		if present[p] {
			continue
		}
		f := s.named(p, pathOf(p))
		f.Left, f.Right, f.Group = s.value(p, decodeAny(s.Now[p])), AbsentValue(), Changed
		out = append(out, f)
	}
	return out
}

func (s FieldSource) value(pointer string, v any) Value {
	if s.masked(pointer) {
		return HiddenValue()
	}
	if list, isList := v.([]any); isList && len(list) > 0 && maskedInside(s.Mask, pointer) {
		return HiddenValue()
	}
	out := valueOf(v, s.names[pointer])
	if m, isMoney := s.Money[pointer]; isMoney && (out.kind == valueNumber || out.kind == valueText) {
		m.Amount = out.text.s
		if _, ok := decimal(m.Amount); ok {
			return MoneyValue(m)
		}
	}
	return out
}

// masked reports whether pointer or something above it is hidden.
func (s FieldSource) masked(pointer string) bool { return masked(s.Mask, pointer) }

func (s FieldSource) apart(pointer string, left, right Value) []Msg {
	if !left.numeric() || !right.numeric() {
		return nil
	}
	m := s.Money[pointer]
	by, share, ok := difference(left.text.s, right.text.s, m.MinorUnits)
	if !ok {
		return nil
	}
	if m.Currency != "" {
		by += " " + m.Currency
	}
	if share == "" {
		return []Msg{msg("field.by", "by", by)}
	}
	if s.Kind == TableStale { // everywhere else it is a part of what stands now
		return []Msg{msg("field.by_share_seen", "by", by, "share", share)}
	}
	return []Msg{msg("field.by_share", "by", by, "share", share)}
}

// three reports whether the table has a column of what was read later.
func (t FieldTable) three() bool { return !t.Third.At.IsZero() }

func (t FieldTable) columns() int {
	if t.three() {
		return 4
	}
	return 3
}

// Count returns how many fields stand in a group.
func (t FieldTable) Count(g Group) int {
	n := 0
	for _, f := range t.Fields {
		if f.Group == g {
			n++
		}
	}
	return n
}

// Hidden returns how many fields hold hidden characters, and whether one of
// them turns the reading direction.
func (t FieldTable) Hidden() (fields int, bidi bool) {
	for _, f := range t.Fields {
		right, label := f.Right.flags(), f.Label.Flags()
		if right.Any() || label.Any() {
			fields++
		}
		bidi = bidi || right.Bidi || label.Bidi
	}
	return fields, bidi
}

func decodeAny(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	return v
}
