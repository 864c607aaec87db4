package main

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/execution"
)

// An executor's metrics are those in the documentation, on an address of their own.
func TestAnExecutorsMetrics(t *testing.T) {
	m := newExecutorMetrics()
	config := execution.Config{Console: "http://127.0.0.1:1", Key: execution.NewSecret("k"), Systems: []execution.System{{Tools: []string{"shop.*"}, BaseURL: "http://127.0.0.1:2"}}}
	e, err := execution.New(config, execution.Options{OnAttempt: m.attempted})
	if err != nil {
		t.Fatal(err)
	}
	m.watch(e)
	m.attempted("shop.set_price", "UNKNOWN", 20*time.Millisecond)
	at, stop, err := serveMetrics("127.0.0.1:0", m.registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop() })
	resp, err := http.Get("http://" + at.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`countersign_executor_attempt_seconds_count{outcome="UNKNOWN",tool="shop.set_price"} 1`,
		`countersign_executor_breaker_open{direction="writes",system="http://127.0.0.1:2"} 0`, "go_goroutines "} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%s is missing", line)
		}
	}
	docs, err := os.ReadFile("../../docs/observing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, help := range regexp.MustCompile(`# HELP (countersign_\w+)`).FindAllSubmatch(text, -1) {
		if !strings.Contains(string(docs), "| `"+string(help[1])+"{") {
			t.Errorf("%s is not documented", help[1])
		}
	}
}
