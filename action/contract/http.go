package contract

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/action"
)

// Request is one wire request, ready to be sent as it is.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte // nil: none
}

// Request builds the wire request for a canonical payload. The base URL is the
// executor's; key goes where the contract says; objectVersion, unless empty,
// becomes If-Match. What would not fit the path is refused. A contract in steps
// has one for each: see ForStep.
func (c *Contract) Request(base string, payload []byte, key, objectVersion string) (*Request, error) {
	if c.HTTP == nil {
		return nil, action.Refuse(action.ToolUnavailable, "The contract does not say how to call the tool over HTTP.")
	}
	doc, err := parsePayload(payload)
	if err != nil {
		return nil, err
	}
	b := &builder{http: c.HTTP, payload: doc, used: map[string]bool{}}
	path := b.path()
	b.body(payload, key)
	query := b.query()
	header := b.header(key)
	if c.ObjectVersion != VersionNone && objectVersion != "" {
		tag, ok := entityTag(objectVersion)
		if !ok {
			b.refuse("", "the object version cannot be sent in If-Match")
		}
		header.Set("If-Match", tag)
	}
	if len(b.problems) > 0 {
		r := action.Refuse(action.InvalidPayload, "The payload cannot be sent the way the contract says.")
		r.Errors = settle(b.problems)
		return nil, r
	}
	target, err := address(base, path, query)
	if err != nil {
		return nil, err
	}
	return &Request{Method: c.HTTP.Method, URL: target, Header: header, Body: b.bytes}, nil
}

type builder struct {
	http     *HTTP
	payload  *node
	used     map[string]bool // top-level fields that the request already carries
	bytes    []byte
	problems []action.FieldError
}

func (b *builder) refuse(pointer, detail string) {
	b.problems = append(b.problems, action.FieldError{Pointer: pointer, Detail: detail})
}

// path fills in the template. Every value stays within its segment.
func (b *builder) path() string {
	parts, err := splitPath(b.http.Path)
	if err != nil { // refused when the contract was put
		b.refuse("", err.Error())
		return ""
	}
	var path strings.Builder
	var last string
	for _, p := range parts {
		if p.pointer == "" {
			path.WriteString(p.text)
			continue
		}
		last = p.pointer
		b.used[splitPointer(p.pointer)[0]] = true
		value, ok := wireText(b.payload.at(p.pointer))
		if !ok || value == "" {
			b.refuse(p.pointer, "must be a non-empty text or a number, because it is part of the address")
			continue
		}
		path.WriteString(url.PathEscape(value))
	}
	for _, segment := range strings.Split(path.String(), "/") {
		if segment == "." || segment == ".." {
			b.refuse(last, "must not be \".\" or \"..\", because it is part of the address")
		}
	}
	return path.String()
}

// wireText is a scalar as it is written in an address.
func wireText(n *node) (string, bool) {
	if n == nil || !n.scalar() || n.kind == nullKind {
		return "", false
	}
	return n.text, true
}

// body picks what is sent, and puts the key into it when the contract says so.
func (b *builder) body(payload []byte, key string) {
	inBody := isPointer(b.http.Idempotency)
	var picked *node
	switch h := b.http.Body; {
	case h.None():
		return
	case h.All:
		b.useAll()
		if !inBody {
			b.bytes = payload
			return
		}
		picked = b.payload
	case h.Pointer != "":
		b.used[splitPointer(h.Pointer)[0]] = true
		if picked = b.payload.at(h.Pointer); picked == nil {
			b.refuse(h.Pointer, "is required, because it is the body of the request")
			return
		}
	default:
		picked = &node{kind: objectKind}
		for _, m := range b.payload.members { // in canonical order
			if slices.Contains(h.Fields, m.key) {
				b.used[m.key] = true
				picked.members = append(picked.members, m)
			}
		}
	}
	if !inBody {
		b.bytes = picked.json()
		return
	}
	var err error
	if b.bytes, err = action.Canonical(b.withKey(picked, key).json()); err != nil {
		b.refuse("", "cannot be sent with the execution key in it")
	}
}

func (b *builder) withKey(body *node, key string) *node {
	name := splitPointer(b.http.Idempotency)[0]
	if body.kind != objectKind {
		b.refuse(b.http.Body.Pointer, "must be an object, because the execution key is sent in it")
		return body
	}
	if body.get(name) != nil {
		b.refuse(b.http.Idempotency, "must not be given: the execution key is sent there")
	}
	keyed := &node{kind: objectKind, members: slices.Clone(body.members)}
	keyed.set(name, stringNode(key))
	return keyed
}

func (b *builder) useAll() {
	for _, m := range b.payload.members {
		b.used[m.key] = true
	}
}

// query carries what neither path nor body carries, so that nothing that was
// approved is left out.
func (b *builder) query() string {
	values := url.Values{}
	for _, m := range b.payload.members {
		if b.used[m.key] || m.value.kind == nullKind {
			continue
		}
		list := m.value.items
		if m.value.kind != listKind {
			list = []*node{m.value}
		}
		for _, item := range list {
			text, ok := wireText(item)
			if !ok {
				b.refuse(join("", m.key), "cannot be sent in the address: only texts, numbers, booleans and lists of them can")
				continue
			}
			values.Add(m.key, text)
		}
	}
	return values.Encode()
}

func (b *builder) header(key string) http.Header {
	header := http.Header{"Accept": {"application/json"}}
	if b.bytes != nil {
		header.Set("Content-Type", "application/json")
	}
	for name, value := range b.http.Headers {
		header.Set(name, value)
	}
	if b.http.Idempotency == "header" && key != "" {
		header.Set("Idempotency-Key", key)
	}
	return header
}

// entityTag writes an object version as an entity tag. A version that already
// is one stays as it is; "*" would match anything and is quoted like a word.
func entityTag(version string) (string, bool) {
	opaque := strings.TrimPrefix(version, "W/")
	quoted := len(opaque) >= 2 && opaque[0] == '"' && opaque[len(opaque)-1] == '"'
	if quoted {
		opaque = opaque[1 : len(opaque)-1]
	} else {
		opaque = version
	}
	for _, r := range opaque { // RFC 9110 etagc
		if r <= ' ' || r == '"' || r == 0x7f {
			return "", false
		}
	}
	if quoted {
		return version, true
	}
	return `"` + version + `"`, true
}

// address joins the executor's base URL and an escaped path.
func address(base, path, query string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the base URL of the tool is not http(s)://host[/path]: %w", errBase)
	}
	target := u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/") + path
	if query != "" {
		target += "?" + query
	}
	return target, nil
}

var errBase = errors.New("bad base URL")

func parsePayload(payload []byte) (*node, error) {
	doc, err := parseJSON(bytes.TrimSpace(payload), maxDepth)
	if err != nil {
		return nil, err
	}
	if doc.kind != objectKind {
		return nil, action.Refuse(action.InvalidPayload, "A payload is a JSON object.").At("", "must be an object")
	}
	return doc, nil
}
