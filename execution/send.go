package execution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/action"
	"countersign/action/contract"
	"countersign/execution/api"
)

const (
	maxText        = 2 << 10 // of an answer that is no JSON, in bytes
	deliverFirst   = time.Second
	deliverLongest = 15 * time.Second
)

var errLate = errors.New("the time to send is over")

// wireCall is a request that is ready to be sent, and its fingerprint.
type wireCall struct {
	request     *http.Request
	fingerprint string
	step        *api.Step          // nil where there are no steps
	contract    *contract.Contract // of the step, or of the whole
}

// prepare builds the request of the action, or of one of its steps, as the
// contract says.
func (r *run) prepare(step *api.Step) (*wireCall, error) {
	name, key, bound := "", r.claimed.ExecutionKey, r.work.ObjectVersion
	if step != nil {
		name, key, bound = step.Name, step.ExecutionKey, step.ObjectVersion
	}
	one, err := r.contract.ForStep(name)
	if err != nil {
		return nil, err
	}
	version := ""
	if bound != nil {
		version = *bound
	}
	wire, err := one.Request(r.system.BaseURL, r.payload, key, version)
	if err != nil {
		return nil, err
	}
	r.system.nameActor(wire, r.work.Actor.ID)
	token := r.system.WriteToken
	if r.contract.Mode == contract.Read {
		token = r.system.ReadToken
	}
	request, err := wireRequest(wire, token)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", r.opt.Agent)
	return &wireCall{request, fingerprint(wire, request.URL), step, one}, nil
}

// nameActor tells a system on whose behalf it is called, where it wants to know.
// What the payload says of it does not count.
func (s System) nameActor(wire *contract.Request, actor string) {
	if s.ActorHeader == "" || actor == "" {
		return
	}
	if strings.ContainsFunc(actor, func(r rune) bool { return r < ' ' || r > '~' }) {
		actor = url.PathEscape(actor)
	}
	wire.Header.Set(s.ActorHeader, actor)
}

// fingerprint is the SHA-256 of what is sent, without the host and the token:
// two executors that do the same send the same.
func fingerprint(wire *contract.Request, address *url.URL) string {
	h := sha256.New()
	part := func(text []byte) { // its length first, so that no two requests read alike
		fmt.Fprintf(h, "%d:", len(text))
		h.Write(text)
	}
	part([]byte(wire.Method))
	part([]byte(address.RequestURI()))
	var names []string
	for name := range wire.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		part([]byte(name))
		part([]byte(strings.Join(wire.Header[name], ", ")))
	}
	part(wire.Body)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// send sends the one request of an attempt, if there is still time and the
// claim stands.
func (r *run) send(ctx context.Context, wire *wireCall, asked time.Time, within time.Duration) reply {
	g := &gate{by: asked.Add(within), may: func() error {
		if elapsed(asked, r.opt.Clock.Now()) >= within || !r.lease.live() {
			return errLate
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(ctx, r.contract.Execution.Timeout.Duration)
	defer cancel()
	ctx, span := r.calling(ctx, "attempt", r.work.Tool, wire.request.Header)
	got := sendOnce(ctx, wire.request, g, r.opt.SystemTLS)
	called(span, got)
	return got
}

// receipt is what is reported of an attempt.
func receipt(attemptID, claimID string, got reply, o contract.Outcome, took time.Duration) api.Receipt {
	r := api.Receipt{ReceiptID: action.NewSecret(16), AttemptID: attemptID, ClaimID: claimID,
		Outcome: string(o.Result), Proves: string(o.Proves), Code: o.Code, HTTPStatus: got.status, TookMillis: millis(took)}
	if got.status == 0 {
		return r
	}
	r.ProviderRef = got.requestID()
	r.Body = evidence(got.body)
	if o.Result == action.Success {
		r.ObjectVersionAfter = got.objectVersion()
		if !recordable(got.body) {
			r.Body = nil
		}
	}
	return r
}

// evidence is an answer as the console can keep it: JSON as it is, and the
// beginning of anything else as text.
func evidence(body []byte) json.RawMessage {
	if len(body) == 0 || recordable(body) {
		return body
	}
	cut := ""
	if len(body) > maxText {
		cut = fmt.Sprintf(" … (%d bytes in all)", len(body))
		body = body[:maxText]
	}
	text, err := json.Marshal(strings.ToValidUTF8(string(body), "\uFFFD") + cut)
	if err != nil {
		return nil
	}
	return text
}

// deliver reports a receipt until the console has taken it or says that it
// never will. A receipt whose answer the console cannot keep goes without.
func (r *run) deliver(ctx context.Context, receipt api.Receipt) (api.Action, error) {
	for try := 1; ; try++ {
		after, err := r.client.Report(ctx, r.work.ActionID, receipt)
		p, ok := AsProblem(err)
		switch {
		case err == nil:
			return after, nil
		case ok && (p.Unsettled() || p.Has(action.RateLimited)):
			pause := max(jitter(backoff(try, deliverFirst, deliverLongest)), min(p.RetryAfter, deliverLongest))
			if r.opt.Clock.Sleep(ctx, pause) == nil {
				continue
			}
		case receipt.Body != nil && HasCode(err, action.Malformed, action.InvalidArgument, action.InvalidPayload, action.TooLarge):
			receipt.Body = nil
			continue
		}
		r.log.Error("a receipt could not be reported", "attempt", receipt.AttemptID, "outcome", receipt.Outcome,
			"code", receipt.Code, "status", receipt.HTTPStatus, "error", err)
		return after, fmt.Errorf("reporting the receipt: %w", err)
	}
}
