// Package static serves the style sheet, the script and the icon, embedded and
// under names that hold a hash of their content, so that browsers may keep
// them for ever.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed app.css app.js favicon.svg
var files embed.FS

// Prefix is where Handler must be mounted.
const Prefix = "/static/"

type asset struct {
	body []byte
	kind string
}

type assets struct {
	paths  map[string]string // name → path with hash
	byPath map[string]asset
}

// loaded is built once from the embedded files and never changed.
var loaded = sync.OnceValue(func() assets {
	a := assets{map[string]string{}, map[string]asset{}}
	for name, kind := range map[string]string{
		"app.css":     "text/css; charset=utf-8",
		"app.js":      "text/javascript; charset=utf-8",
		"favicon.svg": "image/svg+xml",
	} {
		body, err := files.ReadFile(name)
		if err != nil {
			continue // embedded above: the build fails when one is missing
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(name)
		p := Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.paths[name], a.byPath[p] = p, asset{body, kind}
	}
	return a
})

// Path is the address of a file, "/static/app.5f1c0a9e2b7d.css" for "app.css".
// A name that there is no file for gives "".
func Path(name string) string { return loaded().paths[name] }

// Handler serves the files under Prefix to GET and HEAD. An address with
// another hash is 404, so that a page never runs with another version's sheet.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := loaded().byPath[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method == http.MethodGet {
			_, _ = w.Write(a.body) // a reader who went away is nobody's error
		}
	})
}
