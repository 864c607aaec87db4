package execution

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

// maxEvidence bounds an answer that is sent on to the console, in bytes.
const maxEvidence = 256 << 10

// reading is what a read-only query showed, or why it failed.
type reading struct {
	tool     string
	step     string // whose key was asked about, or whose post-conditions were read; "" of the whole
	snapshot json.RawMessage
	failure  string // safe to show; "" when there is a snapshot
	at       time.Time
	wire     action.Wire
}

// read calls a read tool for an action, with the credentials for reading.
func (t *Tools) read(ctx context.Context, tool string, facts contract.Facts) reading {
	failed := func(why string) reading {
		return reading{tool: tool, failure: why, at: t.opt.Clock.Now(), wire: action.Wire{Code: contract.CodeToolUnavailable}}
	}
	known, err := t.contracts.now(ctx, tool)
	if err != nil {
		return failed("its contract cannot be read")
	}
	c := known.contract
	system, served := t.config.serving(tool)
	switch {
	case c.Mode != contract.Read:
		return failed("it is no tool that only reads")
	case !served || c.HTTP == nil:
		return failed("no business system is configured for it")
	}
	input, err := c.InputFor(facts)
	if err != nil {
		return failed("its input cannot be made from the action")
	}
	wire, err := c.Request(system.BaseURL, input, "", "")
	if err != nil {
		return failed("its request cannot be made from the action")
	}
	system.nameActor(wire, facts.ActorID)
	r := t.fetch(ctx, c, system, wire)
	r.wire.ToolVersion = known.version
	return r
}

// fetch sends a query and judges the answer by the contract.
func (t *Tools) fetch(ctx context.Context, c *contract.Contract, system System, wire *contract.Request) reading {
	r := reading{tool: c.Name, at: t.opt.Clock.Now()}
	req, err := wireRequest(wire, system.ReadToken)
	if err != nil {
		r.failure, r.wire.Code = "its request cannot be made", contract.CodeToolUnavailable
		return r
	}
	ctx, span := t.calling(ctx, "read", c.Name, req.Header)
	got := t.readOnce(ctx, system, req, c.Execution.Timeout.Duration)
	called(span, got)
	r.wire = action.Wire{Digest: fingerprint(wire, req.URL), TookMillis: millis(elapsed(r.at, t.opt.Clock.Now())), RequestID: got.requestID(), Status: got.status}
	outcome := c.Classify(got.answer(1))
	switch {
	case errors.Is(got.err, errAway):
		r.failure, r.wire.Code = "its business system does not answer; it is left alone for a while", contract.CodeToolUnavailable
	case outcome.Result != action.Success:
		r.failure, r.wire.Code = outcome.Reason, outcome.Code
	case !recordable(got.body) || string(bytes.TrimSpace(got.body)) == "null":
		r.failure, r.wire.Code = "the answer is empty, too large or not strict JSON", contract.CodeExecutionError
	default:
		r.snapshot = got.body
	}
	return r
}

// readOnce sends a request that changes nothing, unless the system does not
// answer and somebody else is finding out whether it is back.
func (t *Tools) readOnce(ctx context.Context, system System, req *http.Request, timeout time.Duration) reply {
	tell, err := t.breakers[system.BaseURL].read()
	if err != nil {
		return reply{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got := reply{sent: true}
	resp, err := t.reads.Do(req.WithContext(ctx))
	if err == nil {
		got.status, got.header = resp.StatusCode, resp.Header
		got.body, err = readBounded(resp)
	}
	got.err = err
	tell(got)
	return got
}

// wireRequest makes the HTTP request that a contract describes.
func wireRequest(wire *contract.Request, token Secret) (*http.Request, error) {
	req, err := http.NewRequest(wire.Method, wire.URL, bytes.NewReader(wire.Body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	req.Header = wire.Header.Clone()
	req.GetBody = nil
	if token.Set() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	return req, nil
}

// recordable reports whether the console can keep a text as it is.
func recordable(body []byte) bool {
	if len(body) == 0 || len(body) > maxEvidence {
		return false
	}
	var holder struct {
		Body json.RawMessage `json:"body"`
	}
	return action.DecodeStrict(fmt.Appendf(nil, `{"body":%s}`, body), &holder) == nil
}

// answer is the reply as a contract classifies it.
func (r reply) answer(attempt int) contract.Answer {
	a := contract.Answer{Status: r.status, Body: r.body, Attempt: attempt}
	if r.header != nil {
		a.ContentType = r.header.Get("Content-Type")
	}
	switch {
	case r.err == nil:
	case !r.sent:
		a.Err = contract.ErrNotSent
	case r.status != 0:
		a.Err = contract.ErrBody
	default:
		a.Err = brokenBy(r.err)
	}
	return a
}

func brokenBy(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return contract.ErrTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), strings.HasSuffix(err.Error(), "EOF"):
		return contract.ErrReset
	}
	return contract.ErrOther
}

// objectVersion is the version that an answer states: its ETag, or else the
// member "version" of the body. It is "" when neither can name a version.
func (r reply) objectVersion() string {
	if tag := strings.Trim(strings.TrimPrefix(r.header.Get("ETag"), "W/"), `"`); tag != "" {
		return plainWord(tag)
	}
	var body struct {
		Version json.RawMessage `json:"version"`
	}
	if json.Unmarshal(r.body, &body) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(body.Version, &text) == nil {
		return plainWord(text)
	}
	var number json.Number
	if json.Unmarshal(body.Version, &number) == nil {
		return plainWord(number.String())
	}
	return ""
}

// requestID is the business system's name for the request, "" when it tells none.
func (r reply) requestID() string {
	return plainWord(cmp.Or(r.header.Get("Request-Id"), r.header.Get("X-Request-Id")))
}

// millis is a duration that something took, at least one: 0 is not told.
func millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// plainWord keeps a short printable ASCII text, and drops any other.
func plainWord(text string) string {
	if len(text) > 200 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return text
}

// judged is what the console made of a reading.
type judged struct {
	state action.State
	holds *bool     // the conditions on it; nil: unknown, or there are none
	next  *api.Step // what may be attempted now
}

// report sends a reading to the console.
func (t *Tools) report(ctx context.Context, id string, r reading) (judged, error) {
	return t.reportAs(ctx, id, action.NewSecret(16), r)
}

// reportFor sends a reading that a piece of work asked for. Several executors
// may be at the same piece: what the first reports counts, once.
func (t *Tools) reportFor(ctx context.Context, w api.Work, r reading) (judged, error) {
	piece := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %s %s", w.Kind, w.ActionID, w.Version, r.tool, r.step))
	said, err := t.reportAs(ctx, w.ActionID, hex.EncodeToString(piece[:16]), r)
	if HasCode(err, action.IdempotencyKeyInUse) {
		return judged{}, errOvertaken
	}
	return said, err
}

// errOvertaken ends a piece of work that another executor has done meanwhile.
var errOvertaken = errors.New("another executor has reported it already")

func (t *Tools) reportAs(ctx context.Context, id, observation string, r reading) (judged, error) {
	o := api.Observation{ObservationID: observation, Tool: r.tool, Step: r.step, Snapshot: r.snapshot, Error: r.failure, ObservedAt: r.at.UTC(),
		ToolVersion: r.wire.ToolVersion, Fingerprint: r.wire.Digest, TookMillis: r.wire.TookMillis, ProviderRef: r.wire.RequestID,
		HTTPStatus: r.wire.Status, Code: r.wire.Code}
	after, err := t.client.Observe(ctx, id, o)
	if err != nil {
		return judged{}, fmt.Errorf("reporting what %s showed: %w", r.tool, err)
	}
	said := judged{state: action.State(after.State), next: after.NextStep}
	for _, recorded := range after.Observations {
		if recorded.ObservationID == o.ObservationID {
			said.holds = recorded.Holds
		}
	}
	return said, nil
}

// readStep is read for one step, if there is one: under its key.
func (t *Tools) readStep(ctx context.Context, tool string, w api.Work, step *api.Step) reading {
	known, name := facts(w), ""
	if step != nil {
		known.ExecutionKey, name = step.ExecutionKey, step.Name
	}
	r := t.read(ctx, tool, known)
	r.step = name
	return r
}

// facts are what read tools may know of an action.
func facts(w api.Work) contract.Facts {
	f := contract.Facts{Payload: w.Payload, ActorID: w.Actor.ID, ExecutionKey: w.ExecutionKey}
	if w.Target != nil {
		f.TargetType, f.TargetID = w.Target.Type, w.Target.ID
	}
	return f
}
