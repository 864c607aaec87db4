package handlers

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"countersign/action"
)

// ownName refuses a page that is asked for under a name that is not the
// console's: a browser that a foreign name leads here (DNS rebinding) believes
// that our pages belong to whoever owns that name. What machines ask for is
// there under every name: it takes a key, or tells nothing.
func (s *server) ownName(r *http.Request) error {
	if s.names(r.Host) {
		return nil
	}
	return action.Refuse(action.Forbidden, "The console has no pages under this name. It is at "+s.PublicURL+".").
		Because("host").With("url", s.PublicURL)
}

// names reports whether a Host header names the console. One that was given a
// name has this one; one that has none, because it is for this machine or an
// address, has every address and localhost: nobody else can own these.
func (s *server) names(host string) bool {
	if strings.EqualFold(bareHost(s.base, host), bareHost(s.base, s.base.Host)) {
		return true
	}
	return unowned(s.base.Hostname()) && unowned((&url.URL{Host: host}).Hostname())
}

// bareHost is a host without the port that its scheme has anyway.
func bareHost(base *url.URL, host string) string {
	port := map[string]string{"http": "80", "https": "443"}[base.Scheme]
	if name, p, err := net.SplitHostPort(host); err == nil && p == port {
		return strings.Trim(name, "[]")
	}
	return strings.Trim(host, "[]")
}

// unowned reports whether a name is one that no DNS server decides about.
func unowned(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || strings.EqualFold(name, "localhost") || strings.HasSuffix(strings.ToLower(name), ".localhost")
}
