package sandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxBody     = 64 << 10         // bytes of a request body
	workTimeout = 20 * time.Second // with the longest delay: nothing acts later than 50 s after it came in
)

// route is one endpoint of a business system.
type route struct {
	system, method, path string
	write                bool   // needs the write token
	object               string // path value or query parameter that names the business object
	handle               func(context.Context, *call) (answer, error)
}

// call is one request as a system sees it.
type call struct {
	*http.Request
	id         int64 // its row in the log
	system     string
	path       string
	credential credential
	key        string // the key in the path, the Idempotency-Key, or the key that is asked about
	object     string
	actor      string // X-Actor: on whose behalf; empty when not told
	trace      string // traceparent, which callbacks about it carry on; empty when not told
	body       []byte
	fault      Fault
	unkeyed    bool // the key is not honoured
}

// serve runs a route under whatever fault is switched on. The work goes on
// when the caller hangs up, as it does in real systems.
func (s *Sandbox) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(s.life, maxDelay+workTimeout)
		defer cancel()
		c, refusal := s.admit(w, r, rt)
		if err := s.arrive(ctx, c, refusal == nil); err != nil {
			s.broken(c, err).write(w)
			return
		}
		if refusal != nil {
			s.answer(ctx, w, c, *refusal)
			return
		}
		if early, done := s.before(ctx, c); done {
			s.answer(ctx, w, c, early)
			return
		}
		s.answer(ctx, w, c, s.after(ctx, c, s.act(ctx, rt, c)))
	}
}

// admit reads the request and checks the credential. The call is complete
// enough for the log even when it is refused.
func (s *Sandbox) admit(w http.ResponseWriter, r *http.Request, rt route) (*call, *answer) {
	c := &call{Request: r, system: rt.system, credential: s.tokens.credential(rt.system, r), path: r.URL.Path}
	c.actor = r.Header.Get("X-Actor")
	if trace := r.Header.Get("traceparent"); clean(trace) {
		c.trace = trace
	}
	c.key = first(r.PathValue("key"), r.Header.Get("Idempotency-Key"), r.URL.Query().Get("execution_key"))
	c.object = first(r.PathValue(rt.object), r.URL.Query().Get(rt.object))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	c.body = body
	var refusal answer
	switch {
	case !clean(c.key, c.object, c.actor, r.URL.Path):
		c.key, c.object, c.actor, c.path = "", "", "", rt.path
		refusal = unclean()
	case c.credential == noCredential:
		refusal = refuse(http.StatusUnauthorized, "unauthorized", "Send a bearer token of this system.")
	case rt.write && c.credential != writeCredential:
		refusal = refuse(http.StatusForbidden, "read-only-credential", "This token may read only; nothing was changed.")
	case err != nil:
		refusal = refuse(http.StatusRequestEntityTooLarge, "too-large", "The body could not be read, or is over 64 KiB.")
	default:
		if c.fault, err = headerFault(r); err == nil {
			return c, nil
		}
		refusal = refuse(http.StatusBadRequest, "malformed", err.Error())
	}
	return c, &refusal
}

func unclean() answer {
	return refuse(http.StatusBadRequest, "malformed", "Keys and ids are up to 200 characters, without control characters.")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// clean reports whether texts can be stored and shown as ids.
func clean(values ...string) bool {
	for _, v := range values {
		if len(v) > 200 || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
			return false
		}
	}
	return true
}

// maxReason is the longest reason, in bytes.
const maxReason = 500

// readable reports whether a reason says something that can be stored.
func readable(reason string) bool {
	return reason != "" && len(reason) <= maxReason && utf8.ValidString(reason) && !strings.Contains(reason, "\x00")
}

// before applies faults that come ahead of the work. done means that the work
// is not reached; an answer with status 0 is a dropped connection.
func (s *Sandbox) before(ctx context.Context, c *call) (early answer, done bool) {
	switch c.fault.Kind {
	case LostRequest:
		return answer{}, true
	case ErrorBefore:
		return refuse(c.fault.status(), "fault", "Switched on: an error before anything was done."), true
	case TooMany:
		return refuse(http.StatusTooManyRequests, "fault", "Switched on: too many requests."), true
	case DelayThenAct:
		if err := wait(ctx, c.fault.delay()); err != nil {
			return answer{}, true
		}
	}
	return answer{}, false
}

// act does the work, twice when the request is delivered twice.
func (s *Sandbox) act(ctx context.Context, rt route, c *call) answer {
	c.unkeyed = c.fault.Kind == ForgetKey
	a, err := rt.handle(ctx, c)
	if err == nil && c.fault.Kind == Duplicate {
		again := *c
		again.unkeyed = c.fault.IgnoreKey
		_, err = rt.handle(ctx, &again)
	}
	if err != nil {
		return s.broken(c, err)
	}
	return a
}

// after applies faults that come between the work and the answer.
func (s *Sandbox) after(ctx context.Context, c *call, a answer) answer {
	switch c.fault.Kind {
	case ActThenReset:
		return answer{}
	case ActThenDelay:
		either, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(c.Context(), cancel)() // a caller that hung up needs no answer
		defer cancel()
		if wait(either, c.fault.delay()) != nil {
			return answer{}
		}
	case Accept:
		if c.fault.Early && a.status == http.StatusAccepted {
			s.awaitCallback(ctx, c.system, c.key)
		}
	case ErrorAfter:
		return refuse(c.fault.status(), "fault", "Switched on: an error after it was done.")
	case Malformed:
		a.status, a.body = http.StatusOK, a.body[:len(a.body)/2]
	}
	return a
}

// answer notes the answer in the log and then sends it, so that whoever has an
// answer also finds it in the log.
func (s *Sandbox) answer(ctx context.Context, w http.ResponseWriter, c *call, a answer) {
	if err := s.answered(ctx, c, a.status); err != nil {
		slog.Warn("sandbox log", "system", c.system, "call", c.id, "error", err)
	}
	if a.status != 0 {
		w.Header().Set("Request-Id", requestID(c.id))
		a.write(w)
		return
	}
	if err := hangUp(w, c.fault.Kind == ActThenReset); err != nil {
		slog.Warn("sandbox could not drop a connection", "error", err)
		refuse(http.StatusBadGateway, "fault", "A connection that should have been dropped was not.").write(w)
	}
}

// broken is the answer to an error of our own.
func (s *Sandbox) broken(c *call, err error) answer {
	if busy(err) {
		return refuse(http.StatusConflict, "in-progress", "Another request holds this key or this object; nothing was done.")
	}
	slog.Error("sandbox request failed", "system", c.system, "method", c.Method, "path", c.URL.Path, "error", err)
	return refuse(http.StatusInternalServerError, "internal", "Something went wrong here; ask by key what was done.")
}

// hangUp closes the connection without an answer; reset sends RST, otherwise
// the caller sees it end. HTTP/1.1 only.
func hangUp(w http.ResponseWriter, reset bool) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("taking over the connection: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		if err := tcp.SetLinger(0); err != nil {
			slog.Warn("sandbox could not set linger", "error", err)
		}
	}
	return conn.Close()
}
