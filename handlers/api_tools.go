package handlers

import (
	"context"
	"encoding/json"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"countersign/action"
	"countersign/action/rule"
	"countersign/execution/api"
	"countersign/people"
)

// putTool stores a contract as the next version of its tool.
func (s *server) putTool(w http.ResponseWriter, r *http.Request, c caller) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if (media == "application/json" || strings.HasSuffix(media, "+json")) && !json.Valid(raw) {
		return action.Refuse(action.Malformed, "The body is not JSON, as its Content-Type says it is. Send YAML as application/yaml.")
	}
	tool, made, err := s.catalogue.Save(r.Context(), parameter(r, "name"), raw, c.by())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/tools/"+tool.Name+"?version="+strconv.Itoa(tool.Version))
	}
	return respondTool(w, status, tool)
}

// getTool shows one version of a contract.
func (s *server) getTool(w http.ResponseWriter, r *http.Request, c caller) error {
	name := parameter(r, "name")
	version, err := number(r, "version", 1, math.MaxInt32, 0)
	if err != nil {
		return err
	}
	seen, err := s.seesTool(r.Context(), *c.client, name)
	if err != nil {
		return err
	}
	if !seen {
		return noTool(name)
	}
	tool, err := s.catalogue.Latest(r.Context(), name)
	if err != nil {
		return err
	}
	if version == 0 || int(version) == tool.Version {
		return respondTool(w, http.StatusOK, tool)
	}
	if tool, err = s.catalogue.Version(r.Context(), name, int(version)); err != nil {
		return err
	}
	earlier := *tool
	earlier.Active = false
	return respondTool(w, http.StatusOK, &earlier)
}

// seesTool reports whether a client may read a contract: of the tools within
// its limits, and of those that their contracts read with.
func (s *server) seesTool(ctx context.Context, c people.Client, name string) (bool, error) {
	if c.Has(people.RoleAdmin) || len(c.Tools) == 0 || slices.Contains(c.Tools, name) {
		return true, nil
	}
	read, err := s.readWith(ctx, c.Tools)
	return slices.Contains(read, name), err
}

// readWith lists the tools that the contracts of these ones name.
func (s *server) readWith(ctx context.Context, tools []string) (names []string, err error) {
	for _, own := range tools {
		tool, err := s.catalogue.Latest(ctx, own)
		if action.IsCode(err, action.UnknownTool) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, ref := range tool.Contract.References() {
			names = append(names, ref.Tool)
		}
	}
	return names, nil
}

// listTools shows the newest versions, by name.
func (s *server) listTools(w http.ResponseWriter, r *http.Request, c caller) error {
	q := r.URL.Query()
	limit, err := number(r, "limit", 1, maxListed, defaultListed)
	if err != nil {
		return err
	}
	after := ""
	if cursor := q.Get("cursor"); cursor != "" {
		if after = afterCursor(cursor); !toolName(after) {
			return wrongQuery("cursor", "must be the next_cursor of the page before")
		}
	}
	entry := q.Get("entry")
	if entry != "" && !slices.Contains(entryPoints(), entry) {
		return wrongQuery("entry", "must be chat, background or workflow")
	}
	list := api.List[api.Tool]{Items: []api.Tool{}}
	for {
		rows, err := s.Reads.Tools(r.Context(), after, int(limit))
		if err != nil {
			return err
		}
		for _, row := range rows {
			if after = row.Name; !listedFor(*c.client, row) {
				continue
			}
			tool, err := s.catalogue.Of(row)
			if err != nil {
				return err
			}
			if !loads(*c.client, tool, entry) {
				continue
			}
			shown, err := toolOf(tool)
			if err != nil {
				return err
			}
			if list.Items = append(list.Items, shown); len(list.Items) == int(limit) {
				list.NextCursor = new(cursorAfter(row.Name))
				return respond(w, http.StatusOK, list)
			}
		}
		if len(rows) < int(limit) {
			return respond(w, http.StatusOK, list)
		}
	}
}

// listedFor reports whether a client's limits let a tool through.
func listedFor(c people.Client, row rule.ToolVersion) bool {
	return c.Has(people.RoleAdmin) || len(c.Tools) == 0 || slices.Contains(c.Tools, row.Name)
}

// loads reports whether an entry point that the client may use loads a tool.
func loads(c people.Client, tool *rule.Tool, entry string) bool {
	if entry != "" {
		return tool.Active && tool.Contract.Loads(entry) && (len(c.Entries) == 0 || slices.Contains(c.Entries, entry))
	}
	return len(c.Entries) == 0 || slices.ContainsFunc(c.Entries, tool.Contract.Loads)
}

// retireTool takes a tool out of use.
func (s *server) retireTool(w http.ResponseWriter, r *http.Request, c caller) error {
	body, err := decode[api.Retire](w, r)
	if err != nil {
		return err
	}
	name := parameter(r, "name")
	if err := s.Approvals.Retire(r.Context(), name, body.OpenActions, c.by()); err != nil {
		return err
	}
	tool, err := s.catalogue.Latest(r.Context(), name)
	if err != nil {
		return err
	}
	return respondTool(w, http.StatusOK, tool)
}

func respondTool(w http.ResponseWriter, status int, tool *rule.Tool) error {
	shown, err := toolOf(tool)
	if err != nil {
		return err
	}
	return respond(w, status, shown)
}

// toolOf is a contract with every default filled in.
func toolOf(tool *rule.Tool) (api.Tool, error) {
	effective, err := tool.Contract.Effective()
	if err != nil {
		return api.Tool{}, err
	}
	out := api.Tool{Name: tool.Name, Version: tool.Version, Active: tool.Active, Contract: effective, Assumed: []string{}, CreatedAt: tool.CreatedAt.UTC()}
	for _, a := range tool.Contract.Assumed() {
		out.Assumed = append(out.Assumed, a.Pointer)
	}
	return out, nil
}
