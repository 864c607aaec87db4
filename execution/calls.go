package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"countersign/execution/api"
)

// MaxWait is the longest wait of one call, in time that the console holds it.
const MaxWait = maxWait

func get(path ...string) request {
	return request{method: http.MethodGet, path: append([]string{"v1"}, path...)}
}

func post(body any, path ...string) request {
	return request{method: http.MethodPost, path: append([]string{"v1"}, path...), body: body}
}

func (c *Client) action(ctx context.Context, r request) (api.Action, error) {
	var a api.Action
	err := c.do(ctx, r, &a)
	return a, err
}

// Propose asks for an action. The key names the wish: the same key with the
// same content is the same action, whoever crashed in between, so a program
// derives it from what it is doing; with other content it is
// idempotency-key-reused. An empty key stands for a new wish. AsToolError tells
// what is wrong with the tool or its arguments.
func (c *Client) Propose(ctx context.Context, p api.Propose, key string) (api.Action, error) {
	r := post(p, "actions")
	r.key = key
	return c.action(ctx, r)
}

// Submit proposes a draft that is at this version; stale-revision when it has
// moved on, wrong-state when it is no draft.
func (c *Client) Submit(ctx context.Context, id string, version int64) (api.Action, error) {
	r := post(nil, "actions", id, "submit")
	r.version = version
	return c.action(ctx, r)
}

// Revise replaces the content of an action that is at this version, and voids
// every decision on it; stale-revision when it has moved on, wrong-state once it
// is decided.
func (c *Client) Revise(ctx context.Context, id string, version int64, content api.Revise) (api.Action, error) {
	r := post(content, "actions", id, "revisions")
	r.version = version
	return c.action(ctx, r)
}

// Cancel ends an action that is at this version and has not run;
// stale-revision when it has moved on, wrong-state once it runs or has ended.
func (c *Client) Cancel(ctx context.Context, id string, version int64, reason string) (api.Action, error) {
	r := post(api.Cancel{Reason: reason}, "actions", id, "cancel")
	r.version = version
	return c.action(ctx, r)
}

// Get reads an action; not-found also for one that the key may not see.
func (c *Client) Get(ctx context.Context, id string) (api.Action, error) {
	return c.action(ctx, get("actions", id))
}

// Await reads an action as soon as its version is past since, or as it is
// after the wait, at most MaxWait.
func (c *Client) Await(ctx context.Context, id string, since int64, wait time.Duration) (api.Action, error) {
	r := get("actions", id).waiting(wait)
	r.query.Set("since", strconv.FormatInt(since, 10))
	return c.action(ctx, r)
}

func (r request) waiting(wait time.Duration) request {
	r.wait = min(max(wait, 0), MaxWait)
	r.query = url.Values{"wait": {r.wait.String()}}
	return r
}

// ReportPage reports a page of a reconciliation's list, or why it could not be
// read.
func (c *Client) ReportPage(ctx context.Context, run string, p api.ListedPage) (api.Reconciliation, error) {
	var after api.Reconciliation
	err := c.do(ctx, post(p, "reconciliations", run, "pages"), &after)
	return after, err
}

// Filter narrows a list of actions. Empty fields do not narrow. Actor, Target,
// Task and ClaimedBy (the client that claimed) are ids.
type Filter struct {
	State, Tool, Actor, Target, Task, ClaimedBy string

	Limit  int    // of a page; 0: the console's
	Cursor string // NextCursor of the page before
}

// List reads one page of actions.
func (c *Client) List(ctx context.Context, f Filter) (api.List[api.Action], error) {
	r := get("actions")
	r.query = url.Values{}
	for name, value := range map[string]string{"state": f.State, "tool": f.Tool, "actor": f.Actor, "target": f.Target,
		"task": f.Task, "claimed_by": f.ClaimedBy, "cursor": f.Cursor} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if f.Limit > 0 {
		r.query.Set("limit", strconv.Itoa(f.Limit))
	}
	var list api.List[api.Action]
	err := c.do(ctx, r, &list)
	return list, err
}

// Statement reads what may be said to a customer, in a language (en or zh).
func (c *Client) Statement(ctx context.Context, id, lang string) (api.Statement, error) {
	r := get("actions", id, "statement")
	r.query = url.Values{"lang": {lang}}
	var s api.Statement
	err := c.do(ctx, r, &s)
	return s, err
}

// Tools reads the contracts that an entry point loads; "" means all.
func (c *Client) Tools(ctx context.Context, entry string) ([]api.Tool, error) {
	var all []api.Tool
	cursor := ""
	for {
		r := get("tools")
		r.query = url.Values{}
		if entry != "" {
			r.query.Set("entry", entry)
		}
		if cursor != "" {
			r.query.Set("cursor", cursor)
		}
		var page api.List[api.Tool]
		if err := c.do(ctx, r, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil || *page.NextCursor == cursor {
			return all, nil
		}
		cursor = *page.NextCursor
	}
}

// Tool reads one version of a contract; 0 is the current one.
func (c *Client) Tool(ctx context.Context, name string, version int) (api.Tool, error) {
	r := get("tools", name)
	if version > 0 {
		r.query = url.Values{"version": {strconv.Itoa(version)}}
	}
	var t api.Tool
	err := c.do(ctx, r, &t)
	return t, err
}

// PutTool stores a contract, YAML or JSON, with a key of an administrator. The
// same contract again makes no new version; invalid-argument says where it is
// wrong.
func (c *Client) PutTool(ctx context.Context, name string, contract []byte) (api.Tool, error) {
	mediaType := "application/yaml"
	if text := bytes.TrimSpace(contract); len(text) > 0 && text[0] == '{' {
		mediaType = "application/json"
	}
	var t api.Tool
	err := c.do(ctx, request{method: http.MethodPut, path: []string{"v1", "tools", name},
		body: document{mediaType, contract}}, &t)
	return t, err
}

// RetireTool retires a tool; open says what happens to its open actions, keep
// or cancel.
func (c *Client) RetireTool(ctx context.Context, name, open string) error {
	return c.do(ctx, post(api.Retire{OpenActions: open}, "tools", name, "retire"), nil)
}

// Keys reads the public keys of confirmation tokens, a JWK set (RFC 7517).
func (c *Client) Keys(ctx context.Context) (json.RawMessage, error) {
	var keys json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, path: []string{".well-known", "jwks.json"}}, &keys)
	return keys, err
}
