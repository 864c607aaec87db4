package handlers

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
)

// handler answers a request that was let in. What it refuses it returns.
type handler = func(s *server, w http.ResponseWriter, r *http.Request, c caller) error

// route is one line of the table.
type route struct {
	method  string
	pattern string // as chi reads it; {id}, {case}, {run}, {task} and {name} are checked before the handler runs
	name    string // of its own; the operation's id in the OpenAPI document
	who     access
	handle  handler
	holds   time.Duration // how long the handler may wait for something to happen; forever for streams
	call    *call         // what an API route takes and gives; nil for pages
}

// forever marks a route whose answer ends when the reader leaves.
const forever time.Duration = -1

// call documents an API route, and holds it to what it says.
type call struct {
	about   string
	query   []param
	headers []param
	body    any           // of the type that is read; nil for none
	answer  any           // of the type that is given; nil for what has a form of its own
	status  int           // of success
	media   string        // of an answer with a form of its own; JSON when left out
	refuses []action.Code // beside those that every route may give
}

// param is a parameter in the query or a header.
type param struct {
	name     string
	about    string
	many     bool // it may be given more than once
	required bool
}

// page reports whether the route is for people: what it refuses is told on a
// page, and a form has to come from a page of ours.
func (rt route) page() bool {
	for _, root := range []string{"/v1", "/.well-known", "/healthz", "/readyz", "/metrics", "/problems"} {
		if rt.pattern == root || strings.HasPrefix(rt.pattern, root+"/") {
			return false
		}
	}
	return true
}

// routes is everything that the console answers, in the order in which it is
// best read.
func routes() []route {
	return slices.Concat(openRoutes(), apiRoutes(), callbackRoutes(), pageRoutes())
}

// openRoutes need no key and no session.
func openRoutes() []route {
	return []route{
		{get, "/healthz", "health", anyone(), (*server).healthy, 0, nil},
		{get, "/readyz", "ready", anyone(), (*server).ready, 0, nil},
		{get, "/problems/{code}", "problem", anyone(), (*server).showProblem, 0, nil},
		{get, "/.well-known/jwks.json", "keys", anyone(), (*server).publicKeys, 0, &call{status: 200,
			about: "The public keys that confirmation tokens are checked with (RFC 7517)."}},
		{get, "/v1/openapi.json", "openapi", anyone(), (*server).describe, 0, &call{status: 200, about: "This document."}},
	}
}

const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
)

// apiRoutes are for programs, with an API key.
func apiRoutes() []route {
	proposer, executor, admin := keys(people.RoleProposer), keys(people.RoleExecutor), keys(people.RoleAdmin)
	return slices.Concat([]route{
		// Contracts.
		{put, "/v1/tools/{name}", "putTool", admin, (*server).putTool, 0, &call{status: 201, body: contractDocument{}, answer: api.Tool{},
			about:   "Store a contract, as JSON or YAML, as the next version of its tool. The same contract again makes no version and answers 200.",
			refuses: refuses(action.Malformed, action.TooLarge, action.InvalidArgument, action.VersionConflict, action.OutcomeUnknown)}},
		{get, "/v1/tools", "listTools", everyKey(), (*server).listTools, 0, &call{status: 200, answer: api.List[api.Tool]{}, query: slices.Concat(entryParam(), pageParams()),
			about:   "The newest version of every tool that the key may see. With an entry point: of those in use that it loads.",
			refuses: refuses(action.InvalidArgument)}},
		{get, "/v1/tools/{name}", "getTool", everyKey(), (*server).getTool, 0, &call{status: 200, answer: api.Tool{}, query: versionParam(),
			about: "A contract with every default filled in.", refuses: refuses(action.UnknownTool, action.InvalidArgument)}},
		{post, "/v1/tools/{name}/retire", "retireTool", admin, (*server).retireTool, maxWait, &call{status: 200, body: api.Retire{}, answer: api.Tool{},
			about: "Take a tool out of use, and cancel its open actions or keep them.", refuses: changing(action.UnknownTool)}},

		{get, "/metrics", "metrics", keys(people.RoleReader, people.RoleAdmin), (*server).showMetrics, 0, &call{status: 200, media: "text/plain",
			about: "What is measured, for Prometheus. Not for keys that are limited to tools or scopes."}},

		// Actions.
		{post, "/v1/actions", "propose", proposer, (*server).propose, 0, &call{status: 201, body: api.Propose{}, answer: api.Action{}, headers: idempotencyHeader(),
			about: "Propose an action. Repeating the request with its key gives the same action, marked Idempotent-Replayed: true.",
			refuses: changing(action.MissingIdempotencyKey, action.IdempotencyKeyReused, action.IdempotencyKeyInUse, action.UnknownTool, action.InvalidPayload,
				action.DuplicateOpenAction, action.TargetBlocked, action.ToolUnavailable, action.WrongState, action.VersionConflict, action.Paused, action.BudgetExhausted)}},
		{get, "/v1/actions", "listActions", everyKey(), (*server).listActions, 0, &call{status: 200, answer: api.List[api.Action]{}, query: filterParams(),
			about: "Actions that the key may see, newest first.", refuses: refuses(action.InvalidArgument)}},
		{get, "/v1/actions/{id}", "getAction", everyKey(), (*server).getAction, maxWait, &call{status: 200, answer: api.Action{}, query: waitParams(),
			about: "An action. With wait and since: as soon as its version is past since.", refuses: refuses(action.InvalidArgument)}},
		{get, "/v1/actions/{id}/statement", "getStatement", everyKey(), (*server).getStatement, 0, &call{status: 200, answer: api.Statement{}, query: langParam(),
			about: "What may and may not be said to a customer about the action, now.", refuses: refuses(action.InvalidArgument)}},
		{get, "/v1/calls", "exportCalls", everyKey(), (*server).exportCalls, maxWait, &call{status: 200, media: "application/jsonl", query: callParams(),
			about:   "The record of every attempt, reading and question by key of the actions that the key may see, newest action first: JSON lines, the last of which says that it is.",
			refuses: refuses(action.InvalidArgument)}},
		{post, "/v1/actions/{id}/submit", "submit", proposer, (*server).submit, 0, &call{status: 200, answer: api.Action{}, headers: ifMatchHeader(),
			about: "Propose a draft.", refuses: changing(contentRefusals()...)}},
		{post, "/v1/actions/{id}/revisions", "revise", proposer, (*server).revise, 0, &call{status: 201, body: api.Revise{}, answer: api.Action{}, headers: ifMatchHeader(),
			about: "Replace the content. Every decision on earlier content is void.", refuses: changing(contentRefusals()...)}},
		{post, "/v1/actions/{id}/cancel", "cancel", proposer, (*server).cancel, 0, &call{status: 200, body: api.Cancel{}, answer: api.Action{}, headers: ifMatchHeader(),
			about:   "End an action that has not run. The body may be left out.",
			refuses: changing(action.PreconditionRequired, action.StaleRevision, action.WrongState, action.ExpiredCode)}},
	}, executorRoutes(executor), caseRoutes(), taskRoutes(proposer))
}

// executorRoutes are what an execution layer needs, in the order of its work.
func executorRoutes(executor access) []route {
	bound := refuses(action.StaleRevision, action.VersionConflict, action.WrongState, action.ExpiredCode)
	return []route{
		{get, "/v1/work", "work", executor, (*server).work, maxWait, &call{status: 200, answer: api.WorkList{}, query: workParams(),
			about: "What an executor should do now, oldest first. With wait: as soon as there is something.", refuses: refuses(action.InvalidArgument)}},
		{post, "/v1/executors", "noteExecutor", executor, (*server).noteExecutor, 0, &call{status: 200, body: api.Executor{}, answer: api.ExecutorNoted{},
			about:   "Say who is at work and which business systems do not answer, several times a minute, for people to see. Nothing depends on it.",
			refuses: refuses(action.Malformed, action.TooLarge, action.InvalidArgument)}},
		{get, "/v1/confirmations/{ref}", "getConfirmation", everyKey(), (*server).getConfirmation, 0, &call{status: 200, answer: api.ConfirmationState{},
			about: "What a confirmation stands for."}},
		{post, "/v1/confirmations/{ref}/verify", "verify", everyKey(), (*server).verify, 0, &call{status: 200, body: api.Verify{}, answer: api.Verified{},
			about: "Check whether a confirmation stands for exactly this, now. It changes nothing.", refuses: refuses(action.Malformed, action.InvalidArgument)}},
		{post, "/v1/confirmations/{ref}/claim", "claim", executor, (*server).claim, 0, &call{status: 200, body: api.Claim{}, answer: api.Claimed{},
			about:   "Take a confirmation for one executor process. At most one claim is live. Repeating it gives the same answer while it is.",
			refuses: changing(append(bound, action.AlreadyClaimed, action.LeaseLost, action.TargetBlocked, action.Paused, action.BudgetExhausted)...)}},
		{post, "/v1/actions/{id}/lease", "renew", executor, (*server).renew, 0, &call{status: 200, body: api.Renew{}, answer: api.Lease{},
			about: "Extend a live claim.", refuses: changing(action.LeaseLost, action.IdempotencyKeyInUse)}},
		{post, "/v1/actions/{id}/release", "release", executor, (*server).release, 0, &call{status: 200, body: api.Release{}, answer: api.Action{},
			about: "Give a claim back before any attempt. With a code: the action cannot run, and fails.", refuses: changing(action.LeaseLost, action.AttemptOpen, action.IdempotencyKeyInUse)}},
		{post, "/v1/actions/{id}/attempts", "startAttempt", executor, (*server).startAttempt, 0, &call{status: 201, body: api.Attempt{}, answer: api.AttemptStarted{},
			about:   "Record an attempt: the leave to send one request within send_within_ms, counted from before this call.",
			refuses: changing(action.LeaseLost, action.AttemptOpen, action.StaleRevision, action.TargetBlocked, action.IdempotencyKeyInUse, action.Paused, action.BudgetExhausted)}},
		{post, "/v1/actions/{id}/receipts", "report", executor, (*server).report, 0, &call{status: 201, body: api.Receipt{}, answer: api.Action{},
			about: "Report what is known of an attempt. It is taken as evidence even after the lease is lost.", refuses: changing(action.IdempotencyKeyInUse)}},
		{post, "/v1/actions/{id}/observations", "observe", executor, (*server).observation, 0, &call{status: 201, body: api.Observation{}, answer: api.Action{},
			about: "Report what a read-only query showed, or why it failed.", refuses: changing(action.WrongState, action.IdempotencyKeyInUse)}},
		{post, "/v1/reconciliations/{run}/pages", "reportPage", executor, (*server).listedPage, 0, &call{status: 201, body: api.ListedPage{}, answer: api.Reconciliation{},
			about:   "Report a page of the operations that the business system lists, or why it could not be read. The same page again changes nothing.",
			refuses: changing(action.WrongState, action.IdempotencyKeyInUse)}},
	}
}

func refuses(codes ...action.Code) []action.Code { return codes }

// changing is what every call that changes something may refuse, and more.
func changing(more ...action.Code) []action.Code {
	return append(refuses(action.Malformed, action.TooLarge, action.InvalidArgument, action.OutcomeUnknown), more...)
}

func contentRefusals() []action.Code {
	return refuses(action.PreconditionRequired, action.StaleRevision, action.WrongState, action.ExpiredCode, action.InvalidPayload,
		action.UnknownTool, action.ToolUnavailable, action.DuplicateOpenAction, action.TargetBlocked, action.VersionConflict, action.Paused, action.BudgetExhausted)
}

func entryParam() []param {
	return []param{{name: "entry", about: "Entry point: chat, background or workflow."}}
}

func versionParam() []param {
	return []param{{name: "version", about: "A version of the contract; the newest when left out."}}
}

func langParam() []param { return []param{{name: "lang", about: "en (when left out) or zh."}} }

func pageParams() []param {
	return []param{{name: "limit", about: "How many, 1 to 200; 50 when left out."}, {name: "cursor", about: "next_cursor of the page before."}}
}

func filterParams() []param {
	return append([]param{
		{name: "state", about: "A state, such as proposed."},
		{name: "tool", about: "Name of a tool."},
		{name: "actor", about: "Id of an actor."},
		{name: "target", about: "A target as type:id, or its id alone when that has no colon."},
		{name: "task", about: "Id of a task."},
		{name: "claimed_by", about: "Id of the client whose claim is live; me for one's own."},
	}, pageParams()...)
}

func waitParam() param {
	return param{name: "wait", about: "How long to wait, such as 30s or 30; at most 60s."}
}

func waitParams() []param {
	return []param{waitParam(), {name: "since", about: "The version that is known already."}}
}

func workParams() []param {
	return []param{waitParam(), {name: "tool", about: "Name of a tool, or a prefix that ends in *; may be repeated.", many: true}}
}

func idempotencyHeader() []param {
	return []param{{name: "Idempotency-Key", about: "Names what is wanted: 1 to 255 printable ASCII characters.", required: true}}
}

func ifMatchHeader() []param {
	return []param{{name: "If-Match", about: `The version that was read, "7" or 7.`, required: true}}
}
