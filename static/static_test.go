package static

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Result()
}

func TestFilesAreServedUnderTheirHash(t *testing.T) {
	for _, name := range []string{"app.css", "app.js", "favicon.svg"} {
		path := Path(name)
		if path == Prefix+name || !strings.HasPrefix(path, Prefix) {
			t.Fatalf("%s has the path %q", name, path)
		}
		res := get(t, path)
		if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}

func TestOtherAddressesAreNotFound(t *testing.T) {
	for _, path := range []string{"/static/app.css", "/static/app.000000000000.css", "/static/", "/static/../static.go", "/static/static.go"} {
		if res := get(t, path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if Path("nothing.css") != "" {
		t.Error("a file that is not there has a path")
	}
}

func TestOnlyReading(t *testing.T) {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path("app.css"), nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// The policy of the pages allows only what comes from here.
func TestTheSheetAndTheScriptLoadNothing(t *testing.T) {
	for name, a := range loaded().byPath {
		for _, forbidden := range []string{"@import", "http://", "https://", "eval(", "innerHTML", "url("} {
			if strings.Contains(strings.ReplaceAll(string(a.body), "http://www.w3.org/2000/svg", ""), forbidden) {
				t.Errorf("%s holds %s", name, forbidden)
			}
		}
	}
}
