package triage

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/action"
	"countersign/action/rule"
	"countersign/people"
)

// Bounds of a provider's file.
const (
	MaxImportBytes = 1 << 20
	maxImportLines = 20_000
)

// ProviderFile is what a business system's own people sent about operations.
type ProviderFile struct {
	Hash  string // "sha256:" and hex, of the bytes as they came
	Lines []ProviderLine
}

// ProviderLine is one line: what it says of one execution key.
type ProviderLine struct {
	Number    int // in the file, from 1
	Key       string
	Outcome   string // as it stands there
	Reference string
	Amount    string
	Currency  string
}

// Verdict reads the outcome: happened, did_not_happen, or "" for what nobody
// can read. That something was not found says nothing.
func (l ProviderLine) Verdict() string {
	switch strings.ToLower(strings.NewReplacer(" ", "_", "-", "_").Replace(l.Outcome)) {
	case "happened", "succeeded", "success", "completed", "executed":
		return action.Happened
	case "did_not_happen", "not_executed", "failed", "refused", "rejected":
		return action.DidNotHappen
	}
	return ""
}

// Step is the step that the key names, or "".
func (l ProviderLine) Step() string {
	_, step, _ := strings.Cut(l.Key, ":")
	return step
}

// ReadProviderFile reads a CSV file with the columns key and outcome, and
// optionally reference, amount and currency, in any order.
func ReadProviderFile(raw []byte) (ProviderFile, error) {
	f := ProviderFile{Hash: action.ContentHash(raw)}
	if len(raw) > MaxImportBytes {
		return f, badFile("The file is larger than 1 MiB. Send it in parts.", "too-large")
	}
	text := bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
		return f, badFile("The file is not text in UTF-8.", "encoding")
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.TrimLeadingSpace, r.FieldsPerRecord = true, 0
	head, err := r.Read()
	if err != nil {
		return f, badFile("The file is empty.", "empty")
	}
	column := map[string]int{}
	for i, name := range head {
		column[strings.ToLower(strings.TrimSpace(name))] = i + 1
	}
	if column["key"] == 0 || column["outcome"] == 0 {
		return f, badFile("The first line must name the columns key and outcome.", "columns")
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		var wrong *csv.ParseError
		if errors.As(err, &wrong) {
			return f, badFile(fmt.Sprintf("Line %d cannot be read as CSV.", wrong.Line), "line").With("line", fmt.Sprint(wrong.Line))
		}
		if err != nil || len(f.Lines) == maxImportLines {
			return f, badFile(fmt.Sprintf("The file has more than %d lines.", maxImportLines), "too-large")
		}
		line, _ := r.FieldPos(0)
		field := func(name string) string {
			if i := column[name]; i > 0 {
				return strings.TrimSpace(record[i-1])
			}
			return ""
		}
		f.Lines = append(f.Lines, ProviderLine{Number: line, Key: field("key"), Outcome: field("outcome"), Reference: field("reference"),
			Amount: field("amount"), Currency: strings.ToUpper(field("currency"))})
	}
}

func badFile(detail, reason string) *action.Refusal {
	return action.Refuse(action.InvalidArgument, detail).Because("file-"+reason).At("/file", detail)
}

// Match is what a file says of one case, or of one key that is no case.
type Match string

// The matches. Only the first three record anything.
const (
	MatchHappened     Match = "happened"
	MatchDidNotHappen Match = "did_not_happen"
	MatchPartly       Match = "partly"     // of the steps, some happened and some did not
	MatchUnclear      Match = "unclear"    // an outcome that nobody can read
	MatchDiffers      Match = "differs"    // another amount or currency than was sent
	MatchTwice        Match = "twice"      // the key stands in the file more than once
	MatchAbsent       Match = "absent"     // not in the file, which proves nothing
	MatchIncomplete   Match = "incomplete" // of a step it is neither known nor in the file
	MatchStranger     Match = "stranger"   // in the file, but no case of the list
	MatchStale        Match = "stale"      // changed since the list was shown
	MatchImpossible   Match = "impossible" // cannot be recorded now; see Err
)

// records reports whether an import records something.
func (m Match) records() bool {
	return m == MatchHappened || m == MatchDidNotHappen || m == MatchPartly
}

// ImportRow is one case of the list, or one line of no case.
type ImportRow struct {
	Seen   Seen
	Action *action.Action // nil of a stranger
	Lines  []ProviderLine // about it: of each step at most one, in their order; none when the file has none
	Match  Match
	Err    error // why it is impossible
}

// Preview says what a file would record for exactly the cases of a list,
// without recording anything: those that record something first, each as it was
// seen. Keys match as a whole, those of steps each by itself; what is not in the
// file is left as it is.
func (s *Cases) Preview(ctx context.Context, who Who, f ProviderFile, items []Seen) ([]ImportRow, error) {
	if len(items) > MaxBulk {
		return nil, action.Refuse(action.TooLarge, fmt.Sprintf("At most %d cases at a time.", MaxBulk))
	}
	byKey := map[string][]ProviderLine{}
	for _, l := range f.Lines {
		byKey[l.Key] = append(byKey[l.Key], l)
	}
	viewer, err := s.viewer(ctx, who)
	if err != nil {
		return nil, err
	}
	var rows []ImportRow
	for _, seen := range items {
		snap, err := s.Find(ctx, viewer, seen.CaseID)
		if action.IsCode(err, action.StaleRevision) {
			row, err := s.unread(ctx, viewer, seen, f, err)
			if err != nil {
				return nil, err
			}
			for _, l := range row.Lines {
				delete(byKey, l.Key)
			}
			rows = append(rows, row)
			continue
		}
		if err != nil {
			return nil, err
		}
		row, err := s.match(ctx, snap, seen, byKey)
		if err != nil {
			return nil, err
		}
		for _, sent := range snap.Action.Sent() {
			delete(byKey, sent.Key)
		}
		rows = append(rows, row)
	}
	for _, l := range f.Lines {
		if _, left := byKey[l.Key]; left {
			rows = append(rows, ImportRow{Lines: []ProviderLine{l}, Match: MatchStranger})
		}
	}
	slices.SortStableFunc(rows, func(a, b ImportRow) int {
		switch x, y := a.Match.records(), b.Match.records(); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	return rows, nil
}

// viewer is what a person may see now.
func (s *Cases) viewer(ctx context.Context, who Who) (people.Viewer, error) {
	person, err := s.store.Person(ctx, who.ID)
	return people.PersonViewer(person), err
}

// unread is the row of a case whose action cannot be read, for a reason: nothing
// can be recorded on it, whatever the file says.
func (s *Cases) unread(ctx context.Context, viewer people.Viewer, seen Seen, f ProviderFile, why error) (ImportRow, error) {
	a, err := s.Listed(ctx, viewer, seen.CaseID)
	row := ImportRow{Seen: seen, Action: &a, Match: MatchImpossible, Err: why}
	for _, l := range f.Lines {
		if key, _, _ := strings.Cut(l.Key, ":"); key == a.ExecutionKey {
			row.Lines = append(row.Lines, l)
		}
	}
	return row, err
}

func (s *Cases) match(ctx context.Context, snap action.Snapshot, seen Seen, byKey map[string][]ProviderLine) (ImportRow, error) {
	row := ImportRow{Seen: seen, Action: &snap.Action, Match: MatchAbsent}
	said, twice, unclear := map[string]string{}, false, false
	for _, sent := range snap.Action.Sent() {
		lines := byKey[sent.Key]
		if len(lines) == 0 {
			continue
		}
		row.Lines = append(row.Lines, lines[0])
		said[sent.Step] = lines[0].Verdict()
		twice, unclear = twice || len(lines) > 1, unclear || said[sent.Step] == ""
	}
	if len(row.Lines) == 0 {
		return row, nil
	}
	tool, err := s.catalogue.Version(ctx, snap.Action.Tool, snap.Action.ToolVersion)
	if err != nil {
		return row, err
	}
	switch {
	case twice:
		row.Match = MatchTwice
	case seen != See(snap.Action):
		row.Match = MatchStale
	case slices.ContainsFunc(row.Lines, func(l ProviderLine) bool { return !sameMoney(tool, snap.Action, l) }):
		row.Match = MatchDiffers
	case unclear:
		row.Match = MatchUnclear
	default:
		row.Match, row.Err = whole(snap, said)
	}
	return row, nil
}

// whole is what lines about the keys of a case, by their steps, say of all of it.
func whole(snap action.Snapshot, said map[string]string) (Match, error) {
	verdict, err := snap.Together(said)
	if err == nil && verdict == "" {
		return MatchIncomplete, nil
	}
	if err == nil {
		err = snap.Speaks(verdict)
	}
	if err != nil {
		return MatchImpossible, err
	}
	return Match(verdict), nil
}

// sameMoney compares the amount that a line states, if it does, with the first
// one of the payload.
func sameMoney(tool *rule.Tool, a action.Action, l ProviderLine) bool {
	if l.Amount == "" && l.Currency == "" {
		return true
	}
	sent := tool.Contract.Amounts(a.Payload)
	if len(sent) == 0 {
		return false
	}
	amount, _ := json.Marshal(l.Amount) // texts cannot fail
	same, _ := rule.Same(json.RawMessage(sent[0].Text), amount, "")
	return (l.Amount == "" || same) && (l.Currency == "" || sent[0].Currency == "" || l.Currency == sent[0].Currency)
}

// Import settles what a file says, for the cases of a list that are still as
// they were seen, in the name of the person who imports it. The evidence of each
// verdict is the file, by its hash; the note names the line. Everything else is
// reported as it is previewed.
func (s *Cases) Import(ctx context.Context, who Who, f ProviderFile, items []Seen, note string) ([]ImportRow, error) {
	rows, err := s.Preview(ctx, who, f, items)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if !row.Match.records() {
			continue
		}
		said := row.told()
		if note != "" {
			said += "\n" + note
		}
		snap, err := s.Settle(ctx, who, row.Seen, Finding{Verdict: string(row.Match), EvidenceKind: action.EvidenceFile, EvidenceRef: f.Hash, Note: said})
		if err != nil {
			rows[i].Match, rows[i].Err = MatchImpossible, action.AsRefusal(err)
			continue
		}
		rows[i].Action = &snap.Action
	}
	return rows, nil
}

// told are the lines of the file that a verdict rests on, for its note.
func (r ImportRow) told() string {
	var lines []string
	for _, l := range r.Lines {
		said := fmt.Sprintf("Line %d: %s", l.Number, l.Outcome)
		if step := l.Step(); step != "" {
			said = fmt.Sprintf("Line %d, %s: %s", l.Number, step, l.Outcome)
		}
		if l.Reference != "" {
			said += ", reference " + l.Reference
		}
		lines = append(lines, said)
	}
	return strings.Join(lines, "\n")
}
