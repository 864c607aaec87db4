package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// Bounds of what pages about people and programs show.
const (
	listPage  = 100 // rows of a list
	recordMax = 100 // the latest events of a record
)

// newOp names a form, so that sending it twice changes things once.
func newOp() string { return action.NewSecret(10) }

// commandOf is an administrative change that a form asks for. What the form is
// about belongs to the op: a page that is sent again with other content asks
// for another change. Secrets must not be among it.
func commandOf(c caller, fields url.Values, about ...string) people.Command {
	op := clean(fields.Get("op"))
	if op != "" && len(about) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(about, "\x00")))
		op += ":" + hex.EncodeToString(sum[:8])
	}
	return people.Command{Op: op, By: c.session.By(people.RoleAdmin)}
}

// onForm reports whether a refusal is told on the form that it is about, and
// not on a page of its own.
func onForm(err error) bool {
	refusal := action.AsRefusal(err)
	return !slices.Contains([]action.Code{action.NotFound, action.Unauthorized, action.Internal, action.Malformed}, refusal.Code)
}

// opAfter is the op of a form that comes back. It stays while nobody knows
// whether the change was recorded, so that sending it again is safe.
func opAfter(err error, fields url.Values) string {
	if op := clean(fields.Get("op")); op != "" && action.IsCode(err, action.OutcomeUnknown) {
		return op
	}
	return newOp()
}

// sent is the address of a page with what was done there.
func sent(path string, done web.Done) string {
	return path + "?" + url.Values{"done": {string(done)}}.Encode()
}

// formFrame is the frame of a page that answers a form: its address is that of
// the page the form stands on.
func (s *server) formFrame(r *http.Request, c caller, section web.Section, path string) web.Frame {
	frame := s.frame(r, c, section)
	frame.Path, frame.Flash = path, nil
	return frame
}

// refusedStatus prepares the answer to a refused form and returns its status.
func refusedStatus(w http.ResponseWriter, r *http.Request, err error) int {
	refusal := action.AsRefusal(err)
	exchangeOf(r).code = refusal.Code
	if wait := refusal.Args["retry_after"]; wait != "" {
		w.Header().Set("Retry-After", wait)
	}
	return kindOf(refusal.Code).status
}

// clock is the database's time, which pages tell all times by.
func (s *server) clock(ctx context.Context, c caller) (time.Time, error) {
	_, now, err := s.Pages.Events(ctx, c.session.Person.Subject())
	return now, err
}

// pageByName cuts a page out of a list that is sorted by name: what comes after
// the name in the address, and the address of the page that follows.
func pageByName[T any](all []T, name func(T) string, u *url.URL) (page []T, next string) {
	after := u.Query().Get("after")
	page = all[slices.IndexFunc(all, func(t T) bool { return name(t) == after })+1:]
	if len(page) > listPage {
		page = page[:listPage]
		next = pageAfter(u, name(page[listPage-1]))
	}
	return page, next
}

// lines are what a box holds, one a line.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(clean(text)) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// cleaned is clean for all values of a group of boxes.
func cleaned(values []string) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = clean(v)
	}
	return list
}

// own is what was typed, to be given back into its own field.
func own(fields url.Values, name string) web.Own { return web.Own(clean(fields.Get(name))) }

func outside(list []string) []web.Text {
	texts := make([]web.Text, len(list))
	for i, s := range list {
		texts[i] = web.Outside(s)
	}
	return texts
}

// orZero is a moment that may be missing.
func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// adminRecord tells what happened to a person or a program, the latest last.
func adminRecord(events []action.Event) []web.Admin {
	var record []web.Admin
	for _, e := range events[max(0, len(events)-recordMax):] {
		var data struct {
			people.Grants
			people.Refused
			Entries []string `json:"entries"`
			Prefix  string   `json:"prefix"`
		}
		if json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		told := web.Admin{At: e.At, Kind: adminKind(e), By: web.Outside(e.By.Name), What: web.Outside(trustText(data.Grants, data.Entries))}
		switch {
		case data.Prefix != "":
			told.What = web.Outside(keyStart(data.Prefix))
		case e.Kind == people.ToolRefused:
			told.What = web.Outside(data.Tool)
		}
		record = append(record, told)
	}
	return record
}

// trustText is what somebody was trusted with: roles, and the limits by their
// names in the API.
func trustText(g people.Grants, entries []string) string {
	text := strings.Join(g.Roles, ", ")
	for _, limit := range []struct {
		name string
		only []string
	}{{"tools", g.Tools}, {"scopes", g.Scopes}, {"actors", g.Actors}, {"entries", entries}} {
		if len(limit.only) > 0 {
			text += "; " + limit.name + ": " + strings.Join(limit.only, ", ")
		}
	}
	return text
}

// adminKind is the kind of an event as the words of pages know it.
func adminKind(e action.Event) string {
	switch e.Kind {
	case people.PersonCreated, people.ClientCreated:
		return "created"
	case people.PersonEnabled, people.ClientEnabled:
		return "enabled"
	case people.PersonDisabled:
		return "disabled"
	case people.ClientDisabled:
		return "revoked"
	case people.ToolRefused:
		return refusedKind(e)
	case people.PasswordChanged:
		if e.Subject != "person:"+e.By.ID {
			return "password_reset"
		}
	}
	return string(e.Kind)
}

// refusedKind tells why a call around the catalogue was refused.
func refusedKind(e action.Event) string {
	var r people.Refused
	if json.Unmarshal(e.Data, &r) != nil || r.Reason != "entry" {
		return "refused_limits"
	}
	if r.Entry == "" {
		return "refused_no_entry"
	}
	return "refused_" + r.Entry
}

// keyStart is the part of an API key's text that may be shown.
func keyStart(prefix string) string { return "ck_" + prefix }
