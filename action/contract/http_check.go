package contract

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

var errPath = errors.New("must be a path such as /products/{product_id}/price: it starts with \"/\", has plain segments and {field} or {/json/pointer} placeholders, and no \"?\", \"#\", \"..\" or \"//\"")

// splitPath takes a path template apart and refuses what is no plain path.
func splitPath(path string) ([]part, error) {
	parts, err := splitBetween(path, "{", "}", errPath)
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil, errPath
	}
	shape := ""
	for _, p := range parts {
		if p.pointer != "" {
			shape += "x"
			continue
		}
		shape += p.text
		for _, r := range p.text {
			if !plainPathRune(r) {
				return nil, errPath
			}
		}
	}
	for i, segment := range strings.Split(shape, "/") {
		last := i == strings.Count(shape, "/")
		if segment == "." || segment == ".." || segment == "" && i > 0 && !last {
			return nil, errPath
		}
	}
	return parts, nil
}

func plainPathRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/-._~:@!$&'()*+,;=", r)
}

// reservedHeaders belong to the executor, the transport or the key.
func reservedHeader(name string) bool {
	return slices.Contains([]string{
		"Authorization", "Proxy-Authorization", "Cookie", "Host", "Content-Length", "Transfer-Encoding", "Connection",
		"Te", "Trailer", "Upgrade", "Keep-Alive", "Idempotency-Key", "If-Match", "If-None-Match", "Expect",
	}, http.CanonicalHeaderKey(name))
}

func (c *Contract) checkHTTP(base string, h *HTTP, add adder) {
	parts, err := splitPath(h.Path)
	if err != nil {
		add(base+"/path", "%v", err)
	}
	for _, p := range parts {
		if p.pointer != "" {
			c.needPlace(base+"/path", p.pointer, add)
		}
	}
	for name, value := range h.Headers {
		switch {
		case !isToken(name):
			add(join(base+"/headers", name), "is not a header name")
		case reservedHeader(name):
			add(join(base+"/headers", name), "is set by the executor, not by a contract")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }):
			add(join(base+"/headers", name), "must be printable ASCII")
		}
	}
	reads := h.Method == http.MethodGet || h.Method == http.MethodHead
	if reads && !h.Body.None() {
		add(base+"/body", "must be \"none\" for %s", h.Method)
	}
	if reads && c.Mode == Write {
		add(base+"/method", "%s changes nothing: a tool that writes needs another method", h.Method)
	}
	if h.Body.Pointer != "" {
		c.needPlace(base+"/body", h.Body.Pointer, add)
	}
	for _, name := range h.Body.Fields {
		c.needPlace(base+"/body", join("", name), add)
	}
	if isPointer(h.Idempotency) && h.Body.None() {
		add(base+"/idempotency", "needs a body")
	}
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
