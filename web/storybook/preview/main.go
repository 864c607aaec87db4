// Command preview serves every sample page, for looking at them in a browser:
// go run ./web/storybook/preview, then http://127.0.0.1:8099/.
package main

import (
	"flag"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"os"
	"time"

	"countersign/static"
	"countersign/web"
	"countersign/web/storybook"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8099", "where to listen")
	flag.Parse()
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("GET /{$}", index)
	for _, s := range storybook.Stories() {
		mux.HandleFunc("GET /"+s.Name, show(s))
	}
	server := &http.Server{Addr: *addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		slog.Error("preview ended", "err", err)
		os.Exit(1)
	}
}

func index(w http.ResponseWriter, _ *http.Request) {
	for _, s := range storybook.Stories() {
		name := html.EscapeString(s.Name)
		_, _ = fmt.Fprintf(w, `<p><a href="/%s">%s</a> <a href="/%s?lang=zh">zh</a></p>`, name, name, name)
	}
}

func show(s storybook.Story) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lang, _ := web.ParseLang(r.URL.Query().Get("lang"))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		if err := s.Page(lang).Render(storybook.Context(r.Context(), lang), w); err != nil {
			slog.Error("rendering", "story", s.Name, "err", err)
		}
	}
}
