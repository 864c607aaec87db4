package handlers

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign/action"
	"countersign/execution/api"
	"countersign/triage"

	"github.com/go-chi/chi/v5"
)

// parameter is a part of the address, such as {id}, decoded.
func parameter(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return text
	}
	plain, err := url.PathUnescape(text)
	if err != nil {
		return ""
	}
	return plain
}

// checkAddress refuses ids that cannot be any and a query that the route does
// not know, so that a filter with a slip of the pen does not show everything.
func checkAddress(r *http.Request, rt route) error {
	if strings.Contains(rt.pattern, "{id}") && !action.ValidID("act", parameter(r, "id")) {
		return noAction()
	}
	if strings.Contains(rt.pattern, "{case}") && !action.ValidID("cas", parameter(r, "case")) {
		return action.Refuse(action.NotFound, "There is no such case, or you may not see it.").Because("case")
	}
	if strings.Contains(rt.pattern, "{run}") && !action.ValidID("rec", parameter(r, "run")) {
		return triage.NoRun()
	}
	if strings.Contains(rt.pattern, "{task}") && !action.ValidID("tsk", parameter(r, "task")) {
		return noTask()
	}
	if strings.Contains(rt.pattern, "{name}") && !toolName(parameter(r, "name")) {
		if rt.method == put {
			return action.Refuse(action.InvalidArgument, "No tool can have the name that the address says.").
				At("/name", "must be 1 to 128 ASCII letters, digits, underscores, dots and hyphens")
		}
		return noTool(parameter(r, "name"))
	}
	if rt.call == nil {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return action.Refuse(action.Malformed, "The query of the address cannot be read.").From(err)
	}
	refusal := action.Refuse(action.InvalidArgument, "The query of the address is refused.")
	for name, values := range query {
		i := slices.IndexFunc(rt.call.query, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			refusal.At("?"+clipped(name), "is not known here; known are "+names(rt.call.query))
		case len(values) > 1 && !rt.call.query[i].many:
			refusal.At("?"+name, "is given more than once")
		case slices.ContainsFunc(values, func(v string) bool { return !storable(v, 2*maxTargetID) }):
			refusal.At("?"+clipped(name), "must be at most 4096 bytes of text without NUL")
		}
	}
	return orNil(refusal)
}

func names(params []param) string {
	if len(params) == 0 {
		return "none"
	}
	all := make([]string, len(params))
	for i, p := range params {
		all[i] = p.name
	}
	return strings.Join(all, ", ")
}

func clipped(text string) string {
	if text = strings.ToValidUTF8(text, "?"); len(text) > 40 {
		return strings.ToValidUTF8(text[:40], "") + "…"
	}
	return text
}

// orNil is the refusal when it names a place.
func orNil(r *action.Refusal) error {
	if len(r.Errors) == 0 {
		return nil
	}
	return r
}

// Bounds of text from outside, in bytes.
const (
	maxText     = 256  // ids, names and versions
	maxTargetID = 2048 // business systems name things with whole sentences
)

// storable reports whether a database can keep text from outside and look it
// up. What else is in it is for people to see, not for us to refuse.
func storable(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// plainText is storable for what must not hold control characters either.
func plainText(text string, most int) bool {
	return storable(text, most) && !strings.ContainsFunc(text, unicode.IsControl)
}

// toolName reports whether a text can be the name of a tool.
func toolName(name string) bool {
	for _, c := range name {
		if c > unicode.MaxASCII || c != '_' && c != '.' && c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

func noAction() *action.Refusal {
	return action.Refuse(action.NotFound, "There is no such action, or you may not see it.")
}

func noTask() *action.Refusal {
	return action.Refuse(action.NotFound, "There is no such task, or you may not see it.").Because("task")
}

func noTool(name string) *action.Refusal {
	return action.Refuse(action.UnknownTool, "There is no such tool here. GET /v1/tools lists those that you may use.").With("tool", clipped(name))
}

// decode reads a JSON body strictly.
func decode[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	var body T
	raw, err := readBody(w, r)
	if err == nil {
		err = action.DecodeStrict(raw, &body)
	}
	return body, err
}

// decodeOptional is decode for a body that may be left out.
func decodeOptional[T any](w http.ResponseWriter, r *http.Request) (T, error) {
	var body T
	raw, err := readBody(w, r)
	if err == nil && len(strings.TrimSpace(string(raw))) > 0 {
		err = action.DecodeStrict(raw, &body)
	}
	return body, err
}

// readBody reads a whole body, as long as it is small and comes soon.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readBodyUpTo(w, r, action.MaxBodyBytes)
}

func readBodyUpTo(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, action.Refuse(action.Malformed, "Send the body uncompressed, without Content-Encoding.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		detail := "The body is larger than " + strconv.FormatInt(most>>10, 10) + " KiB; send a reference to large content instead of the content."
		return nil, action.Refuse(action.TooLarge, detail).With("limit", strconv.FormatInt(most, 10)).At("", detail)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, action.Refuse(action.Malformed, "The body did not arrive in time.").From(err)
	case err != nil:
		return nil, action.Refuse(action.Malformed, "The body did not arrive as a whole.").From(err)
	}
	return raw, nil
}

// ifMatch reads the version that the caller saw, from If-Match: "7" or 7.
func ifMatch(r *http.Request) (int64, error) {
	sent := r.Header.Values("If-Match")
	if len(sent) == 0 {
		return 0, action.Refuse(action.PreconditionRequired, `Send the version that you have read as If-Match: "7".`)
	}
	text := sent[0]
	if len(text) > 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if len(sent) > 1 || err != nil || version < 1 || text != strconv.FormatInt(version, 10) {
		return 0, action.Refuse(action.Malformed, `If-Match names one version, as "7" or 7.`).Because("if-match")
	}
	return version, nil
}

// idempotencyKey reads the caller's name for what it wants.
func idempotencyKey(r *http.Request) (string, error) {
	sent := r.Header.Values("Idempotency-Key")
	if len(sent) == 0 || len(sent) == 1 && sent[0] == "" {
		return "", action.Refuse(action.MissingIdempotencyKey, "Send an Idempotency-Key: repeating a request with its key takes effect once.")
	}
	printable := !strings.ContainsFunc(sent[0], func(c rune) bool { return c < ' ' || c > '~' })
	if len(sent) > 1 || len(sent[0]) > 255 || !printable {
		return "", action.Refuse(action.Malformed, "Idempotency-Key is one value of 1 to 255 printable ASCII characters.").Because("idempotency-key")
	}
	return sent[0], nil
}

// waitOf reads how long a caller wants to wait, at most maxWait.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	var wait api.Duration
	if err := wait.UnmarshalJSON([]byte(quotedUnlessNumber(text))); err != nil || wait < 0 {
		return 0, wrongQuery("wait", "must be a duration such as 30s, or a number of seconds")
	}
	return min(time.Duration(wait), maxWait), nil
}

func quotedUnlessNumber(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return text
	}
	return strconv.Quote(text)
}

// number reads a whole number of the query, from least to most.
func number(r *http.Request, name string, least, most, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, wrongQuery(name, "must be a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
	}
	return n, nil
}

func wrongQuery(name, detail string) error {
	return action.Refuse(action.InvalidArgument, "The query of the address is refused: "+name+" "+detail+".").At("?"+name, detail)
}
