package execution

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"countersign/action"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	maxTries    = 6 // of one call, over about six seconds
	firstPause  = 200 * time.Millisecond
	longPause   = 5 * time.Second
	callTimeout = 15 * time.Second // of one try, beyond what it waits for
	maxAnswer   = 16 << 20         // bytes
)

// Options are what a program may replace. The zero value is fit for use.
type Options struct {
	Logger    *slog.Logger                                   // nil: slog.Default()
	Clock     Clock                                          // nil: the system's
	Transport http.RoundTripper                              // to the console; nil: a transport of its own
	Agent     string                                         // User-Agent; "": "countersign"
	Traces    trace.TracerProvider                           // collects spans; nil: nobody does
	OnAttempt func(tool, outcome string, took time.Duration) // called after each attempt, for measuring; nil: nothing is
	SystemTLS *tls.Config                                    // for business systems: roots, client certificates; nil: the system's roots
}

func (o Options) complete() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	if o.Traces == nil {
		o.Traces = noop.NewTracerProvider()
	}
	o.Agent = cmp.Or(o.Agent, "countersign")
	return o
}

// Client calls the console's API. It is safe for concurrent use.
//
// A call whose answer is lost (connection broken, timeout, a 5xx that does not
// say that nothing happened) is repeated a few times with the same key or id,
// which the console recognises. A refusal is never repeated. Errors are
// *Problem, unless the request could not be made at all.
type Client struct {
	base string
	key  Secret
	http *http.Client
	opt  Options
}

// NewClient makes a client for the console at a base URL.
func NewClient(console string, key Secret, options Options) (*Client, error) {
	if err := checkBaseURL(console); err != nil {
		return nil, fmt.Errorf("the console's address %w", err)
	}
	options = options.complete()
	return &Client{
		base: strings.TrimRight(console, "/"),
		key:  key,
		http: &http.Client{Transport: options.Transport, CheckRedirect: notFollowed},
		opt:  options,
	}, nil
}

// As is the same client with another key.
func (c *Client) As(key Secret) *Client {
	other := *c
	other.key = key
	return &other
}

// notFollowed keeps a client from sending a key or a command elsewhere.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// request is one call of the API.
type request struct {
	method  string
	path    []string // segments below the base, escaped when the address is made
	query   url.Values
	key     string // Idempotency-Key
	version int64  // If-Match; 0: none
	body    any    // sent as JSON; a document is sent as it is
	wait    time.Duration
}

// document is a body in a language of its own.
type document struct {
	mediaType string
	text      []byte
}

// answer is a complete answer of the console.
type answer struct {
	status     int
	retryAfter time.Duration
	body       []byte
}

func (a answer) decode(into any) error {
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.body, into)
}

// do makes a call, again where that is safe and useful, and decodes the answer.
func (c *Client) do(ctx context.Context, r request, into any) error {
	body, mediaType, err := encode(r.body)
	if err != nil {
		return err
	}
	if r.method != http.MethodGet {
		r.key = cmp.Or(r.key, action.NewSecret(16))
	}
	for try := 1; ; try++ {
		problem := c.try(ctx, r, body, mediaType, into)
		if problem == nil {
			return nil
		}
		if !problem.Unsettled() || try == maxTries || ctx.Err() != nil {
			return problem
		}
		pause := max(jitter(backoff(try, firstPause, longPause)), min(problem.RetryAfter, longPause))
		if c.opt.Clock.Sleep(ctx, pause) != nil {
			return problem
		}
	}
}

// try makes a call once.
func (c *Client) try(ctx context.Context, r request, body []byte, mediaType string, into any) *Problem {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+r.wait)
	defer cancel()
	a, err := c.send(ctx, r, body, mediaType)
	if err != nil {
		return unanswered(r.method, err)
	}
	if a.status >= 300 {
		return a.refused()
	}
	if err := a.decode(into); err != nil {
		return unanswered(r.method, fmt.Errorf("reading the console's answer: %w", err))
	}
	return nil
}

func (c *Client) send(ctx context.Context, r request, body []byte, mediaType string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.address(r), bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.opt.Agent)
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.version > 0 {
		req.Header.Set("If-Match", strconv.Quote(strconv.FormatInt(r.version, 10)))
	}
	carry(ctx, req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = errors.New("the answer is too large")
	}
	return answer{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After")), text}, err
}

func (c *Client) address(r request) string {
	var address strings.Builder
	address.WriteString(c.base)
	for _, segment := range r.path {
		address.WriteString("/" + url.PathEscape(segment))
	}
	if len(r.query) > 0 {
		address.WriteString("?" + r.query.Encode())
	}
	return address.String()
}

// retryAfter reads seconds; the other form of the header is not used here.
func retryAfter(text string) time.Duration {
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}

// encode writes a body without HTML escaping, so that payload bytes stay what
// they are.
func encode(body any) (text []byte, mediaType string, err error) {
	switch b := body.(type) {
	case nil:
		return nil, "", nil
	case document:
		return b.text, b.mediaType, nil
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, "", fmt.Errorf("encoding a request: %w", err)
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), "application/json", nil
}
