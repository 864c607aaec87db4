package handlers

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/store/stage"
	"countersign/triage"
)

// failing answers so many reads of a file, and no more.
type failing struct {
	Reads
	RunReads
	left *atomic.Int32
}

func (f failing) gone() error {
	if f.left.Add(-1) < 0 {
		return errors.New("the database is gone")
	}
	return nil
}

func (f failing) Actions(ctx context.Context, q approvals.Filter) ([]action.Action, time.Time, error) {
	if err := f.gone(); err != nil {
		return nil, time.Time{}, err
	}
	return f.Reads.Actions(ctx, q)
}

func (f failing) Differences(ctx context.Context, q triage.DifferenceFilter) ([]triage.Difference, error) {
	if err := f.gone(); err != nil {
		return nil, err
	}
	return f.RunReads.Differences(ctx, q)
}

// spread starts a server whose files are read in pages of one row and end after
// so many; the database goes away after so many reads.
func (e *env) spread(most, reads int) string {
	e.T.Helper()
	server, inner := e.open(e.Console)
	left := new(atomic.Int32)
	left.Store(int32(reads))
	inner.filePage, inner.fileMost = 1, most
	f := failing{Reads: inner.Reads, RunReads: inner.RunReads, left: left}
	inner.Reads, inner.RunReads = f, f
	return server.URL
}

// sheet downloads a file: its rows without the head, and whether all of it came.
func (b *browser) sheet(address string) (rows [][]string, whole bool) {
	b.T.Helper()
	resp, err := b.client.Get(address)
	if err != nil {
		return nil, false // cut off before any of it was sent
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, false
	}
	rows, err = csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\uFEFF"))).ReadAll()
	if err != nil || resp.StatusCode != http.StatusOK || len(rows) == 0 {
		b.T.Fatalf("status %d, %v in %q", resp.StatusCode, err, text)
	}
	return rows[1:], true
}

// A part of a file never passes for all of it, and a file is of all that the list
// has on its pages.
func TestAFileIsWholeOrSaysThatItIsNot(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for range 5 {
		ids = append([]string{e.proposed(stage.SetPrice).ID}, ids...)
	}
	b := e.as(e.Mia)
	const plenty = 1000
	if rows, whole := b.sheet(e.spread(plenty, plenty) + "/history.csv"); !whole || len(rows) != len(ids) {
		t.Fatalf("all of it has %d rows (%v)", len(rows), whole)
	}
	if rows, whole := b.sheet(e.spread(plenty, 3) + "/history.csv"); whole {
		t.Errorf("what was cut off after three rows came as a whole: %d rows", len(rows))
	}
	gone := send1(t, b.client, e.spread(plenty, 0), request{method: get, path: "/history.csv"}).want(http.StatusInternalServerError)
	if gone.header.Get("Content-Disposition") != "" {
		t.Error("the page that says so is offered as a file")
	}

	// The most that a file has leads on.
	base := e.spread(3, plenty)
	rows, _ := b.sheet(base + "/history.csv?tool=" + stage.SetPrice)
	if len(rows) != 4 || rows[2][0] != ids[2] || rows[3][0] != "This file has 3 requests. The older ones are at "+base+"/history.csv?after="+ids[2]+"&tool="+stage.SetPrice {
		t.Fatalf("the first of them: %v", rows)
	}
	_, rest, _ := strings.Cut(rows[3][0], " are at ")
	if rows, _ = b.sheet(rest); rows[0][0] != ids[3] {
		t.Errorf("where it leads on to: %v", rows)
	}
	if rows, _ = b.sheet(base + "/history.csv?after=" + ids[1]); len(rows) != 3 || rows[2][0] != ids[4] {
		t.Errorf("three that are left: %v", rows)
	}

	// A later page offers the same files as the first.
	first := b.open("/history?tool=" + stage.SetPrice)
	files := `href="/history.csv?tool=` + stage.SetPrice + `"`
	first.holds(files, `href="/history.jsonl?tool=`+stage.SetPrice+`"`)
	b.open("/history?"+url.Values{"tool": {stage.SetPrice}, "after": {ids[3]}}.Encode()).holds(ids[4], files).lacks(ids[3] + "<")
}

// A file names who decided beyond doubt, and nothing in it hides or turns the rest
// of its row round.
func TestAFileShowsWhatCouldHide(t *testing.T) {
	e := newEnv(t)
	p := stage.Proposal(stage.SetPrice, stage.Product(), 105)
	p.Actor.ID = "u-\u202egnp.exe\u2066"
	a := e.Approve(e.Propose(p), e.Mia)
	rows, _ := e.as(e.Mia).sheet(e.server.URL + "/history.csv?q=" + a.PayloadHash)
	if len(rows) != 1 || rows[0][7] != "u-[U+202E]gnp.exe[U+2066]" || rows[0][10] != "approved: Mia ("+e.Mia.ID+")" {
		t.Errorf("%q", rows)
	}
}
