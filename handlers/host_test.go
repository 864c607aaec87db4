package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/people"
)

// A browser that somebody else's name leads to the console gets no page from
// it, not even with a session; machines reach it under every name.
func TestPagesAreThereUnderTheConsolesOwnName(t *testing.T) {
	e := newEnv(t)
	mia := e.as(e.Mia)
	ask := func(host, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = host; strings.HasPrefix(path, "/v1/") {
			r.Header.Set("Authorization", "Bearer "+e.keys[people.RoleReader])
		}
		for _, c := range mia.client.Jar.Cookies(r.URL) { // the browser sends what it has for the name; here, at worst, this
			r.AddCookie(c)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"} {
		for _, path := range []string{"/approvals", "/login", "/nowhere", "/history"} {
			if status, text := ask(host, path); status != http.StatusForbidden || !strings.Contains(text, "no pages under this name") || strings.Contains(text, e.Mia.Name) {
				t.Errorf("%s under %s: %d\n%s", path, host, status, text)
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/.well-known/jwks.json", "/v1/actions"} {
			if status, text := ask(host, path); status != http.StatusOK {
				t.Errorf("%s under %s: %d\n%s", path, host, status, text)
			}
		}
	}
	for _, host := range []string{"", "localhost", "LOCALHOST:8080", "[::1]:8080", "192.168.0.7", "demo.localhost"} { // "": as the address says
		if status, text := ask(host, "/approvals"); status != http.StatusOK {
			t.Errorf("under %s: %d\n%s", host, status, text)
		}
	}
}

// A console with a name of its own has pages under this name alone.
func TestAConsoleWithANameHasThisOneOnly(t *testing.T) {
	e := newEnv(t)
	_, inner := e.alone()
	for host, own := range map[string]bool{
		"console.example": true, "Console.Example:443": true, "console.example:8443": false, "console.example:80": false,
		"localhost": false, "127.0.0.1": false, "": false, "evil.example": false, "console.example.evil.example": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.Host = host; (inner.ownName(r) == nil) != own {
			t.Errorf("%q: %v", host, inner.ownName(r))
		}
	}
}
