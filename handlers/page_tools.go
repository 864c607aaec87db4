package handlers

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/action/rule"
	"countersign/approvals"
	"countersign/people"
	"countersign/web"
)

// toolBatch is how many contracts are read at a time.
const toolBatch = 200

// listedTool is a tool's newest contract.
type listedTool = *rule.Tool

// eachTool gives out the newest version of every tool by name, after a name,
// until take has had enough.
func (s *server) eachTool(ctx context.Context, after string, take func(t listedTool) bool) error {
	for {
		rows, err := s.Reads.Tools(ctx, after, toolBatch)
		if err != nil {
			return err
		}
		for _, row := range rows {
			t, err := s.catalogue.Of(row)
			if err != nil {
				return err
			}
			if !take(t) {
				return nil
			}
		}
		if len(rows) < toolBatch {
			return nil
		}
		after = rows[len(rows)-1].Name
	}
}

// inSight tells which tools a person may see: all of them, or those within their
// limits and what the contracts of those name.
func (s *server) inSight(ctx context.Context, p people.Person) (sees func(tool string) bool, err error) {
	v := people.PersonViewer(p)
	if v.All || len(v.Tools) == 0 {
		return func(string) bool { return true }, nil
	}
	read, err := s.readWith(ctx, v.Tools)
	return func(tool string) bool { return slices.Contains(v.Tools, tool) || slices.Contains(read, tool) }, err
}

// showTools lists what programs may propose, by name.
func (s *server) showTools(w http.ResponseWriter, r *http.Request, c caller) error {
	ctx := r.Context()
	lang := string(langOf(r, c))
	query := strings.TrimSpace(clean(r.URL.Query().Get("q")))
	page := web.ToolsPage{Query: web.Outside(query), Kind: r.URL.Query().Get("kind"), Manage: c.session.Person.Has(people.RoleAdmin)}
	sees, err := s.inSight(ctx, c.session.Person)
	if err != nil {
		return err
	}
	err = s.eachTool(ctx, clean(r.URL.Query().Get("after")), func(t listedTool) bool {
		if !sees(t.Name) || !mentions(t, lang, query) || !ofKind(t, page.Kind) {
			return true
		}
		if len(page.Tools) == listPage {
			page.NextURL = pageAfter(r.URL, page.Tools[listPage-1].Name)
			return false
		}
		page.Tools = append(page.Tools, toolRowOf(t, lang))
		return true
	})
	if err != nil {
		return err
	}
	if err := s.countWaiting(ctx, c.session.Person, page.Tools); err != nil {
		return err
	}
	now, err := s.clock(ctx, c)
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, http.StatusOK, web.ToolsView(s.frame(r, c, web.Tools), page))
}

// mentions reports whether a tool's name or title holds what is looked for.
func mentions(t listedTool, lang, query string) bool {
	query = strings.ToLower(query)
	return strings.Contains(strings.ToLower(t.Name), query) || strings.Contains(strings.ToLower(titleOf(t.Contract, lang)), query)
}

// ofKind reports whether a tool does what the filter asks for.
func ofKind(t listedTool, kind string) bool {
	switch kind {
	case web.KindReads:
		return t.Contract.Mode == contract.Read
	case web.KindWrites:
		return t.Contract.Mode != contract.Read
	}
	return true
}

// countWaiting says of each tool how many of its proposals the person could see
// in the queue.
func (s *server) countWaiting(ctx context.Context, p people.Person, rows []web.ToolRow) error {
	f := queueOf(p, approvals.Everybody)
	waiting, err := s.Pages.QueueCount(ctx, f, "", 1)
	if err != nil || waiting == 0 {
		return err
	}
	for i := range rows {
		if rows[i].Read {
			continue
		}
		f.Tool = rows[i].Name
		n, err := s.Pages.QueueCount(ctx, f, "", countMost)
		if err != nil {
			return err
		}
		rows[i].Open = count(n)
	}
	return nil
}

// showTool is one version of a contract in words, the newest when none is named.
func (s *server) showTool(w http.ResponseWriter, r *http.Request, c caller) error {
	name := parameter(r, "name")
	versions, err := s.Directory.ToolVersions(r.Context(), name)
	if err != nil {
		return err
	}
	sees, err := s.inSight(r.Context(), c.session.Person)
	if err != nil {
		return err
	}
	if len(versions) == 0 || !sees(name) {
		return noTool(name)
	}
	shown, err := s.namedVersion(r, "version", versions, versions[0].Version)
	if err != nil {
		return err
	}
	var before *rule.Tool
	if r.URL.Query().Get("against") != "" {
		if before, err = s.namedVersion(r, "against", versions, 0); err != nil {
			return err
		}
	}
	lang := string(langOf(r, c))
	page := toolPageOf(shown, before, lang, s.trial(shown.Contract))
	page.Tool.Retired, page.Manage = !versions[0].Active, c.session.Person.Has(people.RoleAdmin)
	if page.Versions, err = s.versionsOf(r.Context(), versions, shown.Version); err != nil {
		return err
	}
	return s.show(speaking(r, c, versions[0].Now), w, http.StatusOK, web.ToolView(s.frame(r, c, web.Tools), page))
}

// namedVersion is the version that a part of the address names.
func (s *server) namedVersion(r *http.Request, param string, versions []rule.ToolVersion, otherwise int) (*rule.Tool, error) {
	wanted, err := number(r, param, 1, math.MaxInt32, int64(otherwise))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(versions, func(v rule.ToolVersion) bool { return int64(v.Version) == wanted })
	if i < 0 {
		return nil, action.Refuse(action.NotFound, "This tool has no such version.")
	}
	return s.catalogue.Of(versions[i])
}

// versionsOf lists the versions of a tool with who put them.
func (s *server) versionsOf(ctx context.Context, versions []rule.ToolVersion, shown int) ([]web.ToolVersion, error) {
	events, _, err := s.Pages.Events(ctx, "tool:"+versions[0].Name)
	if err != nil {
		return nil, err
	}
	by := map[int]string{}
	for _, e := range events {
		var data struct {
			Version int `json:"version"`
		}
		if e.Kind == "tool_saved" && json.Unmarshal(e.Data, &data) == nil {
			by[data.Version] = e.By.Name
		}
	}
	list := make([]web.ToolVersion, len(versions))
	for i, v := range versions {
		list[i] = web.ToolVersion{Version: v.Version, At: v.CreatedAt.In(time.UTC), By: web.Outside(by[v.Version]), Shown: v.Version == shown}
	}
	return list, nil
}
