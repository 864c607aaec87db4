package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"countersign/execution/api"
)

// collector receives traces in OTLP over HTTP (opentelemetry-proto, collector/trace/v1).
type collector struct {
	mu    sync.Mutex
	raw   bytes.Buffer
	spans []span
}

type span struct{ service, trace, id, parent, name string }

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, of := range fields(body)[1] { // resource_spans
		service := serviceOf(fields(of)[1])
		for _, scope := range fields(of)[2] {
			for _, text := range fields(scope)[2] {
				f := fields(text)
				c.spans = append(c.spans, span{service, hex.EncodeToString(first(f[1])), hex.EncodeToString(first(f[2])), hex.EncodeToString(first(f[4])), string(first(f[5]))})
			}
		}
	}
}

// serviceOf is the attribute service.name of a resource.
func serviceOf(resource [][]byte) string {
	for _, attribute := range fields(first(resource))[1] {
		if f := fields(attribute); string(first(f[1])) == "service.name" {
			return string(first(fields(first(f[2]))[1]))
		}
	}
	return ""
}

func first(values [][]byte) []byte {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// fields are the length-delimited fields of a protobuf message, by number.
func fields(message []byte) map[int][][]byte {
	found := map[int][][]byte{}
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return found
		}
		message = message[n:]
		switch tag & 7 {
		case 0:
			_, n := binary.Uvarint(message)
			message = message[max(n, 1):]
		case 1:
			message = message[min(8, len(message)):]
		case 5:
			message = message[min(4, len(message)):]
		case 2:
			size, n := binary.Uvarint(message)
			if n <= 0 || uint64(len(message)-n) < size {
				return found
			}
			found[int(tag>>3)] = append(found[int(tag>>3)], message[n:n+int(size)])
			message = message[n+int(size):]
		default:
			return found
		}
	}
	return found
}

// of are the spans of a trace, by service and name.
func (c *collector) of(trace string) map[string]span {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]span{}
	for _, s := range c.spans {
		if s.trace == trace {
			found[s.service+": "+s.name] = s
		}
	}
	return found
}

// One trace, which the proposing program began, holds what console, executor and
// business system did for one refund, hours later or not, its callback too; and
// nothing of what it was about.
func TestOneTraceHoldsARefund(t *testing.T) {
	t.Parallel()
	spans := &collector{}
	receiver := httptest.NewServer(spans)
	t.Cleanup(receiver.Close)
	p, f := startDemoWith(t, environment{"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL, "OTEL_BSP_SCHEDULE_DELAY": "200"}, dataFolder(t), "--no-traffic")
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.Console+"/v1/actions", strings.NewReader(
		`{"tool":"refunds.refund_order","actor":{"id":"u-anna-schmidt"},"payload":{"order_id":"10094","amount":3.10,"reason":"a secret of the customer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + f.Keys.Proposer, "Content-Type": "application/json", "Idempotency-Key": "traced-1",
		"Traceparent": "00-" + trace + "-" + parent + "-01"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("proposing: %v, %v", resp, err)
	}
	resp.Body.Close()
	var list api.List[api.Action]
	f.call(t, http.StatusOK, f.Keys.Reader, http.MethodGet, "/v1/actions?tool=refunds.refund_order&limit=1", "", &list)
	id := list.Items[0].ID
	f.isRead(t, id)
	f.signIn(t, "mia").approve(t, id)
	f.reaches(t, id, "applied")
	wanted := []string{"countersign-console: POST /v1/actions", "countersign-console: POST /v1/confirmations/{ref}/claim", "countersign-console: POST /v1/actions/{id}/receipts",
		"countersign-console: POST /v1/callbacks/{tool}", "countersign-executor: work execute", "countersign-executor: attempt refunds.refund_order", "countersign-sandbox: "}
	eventually(t, "the trace to hold "+strings.Join(wanted, ", "), func() bool {
		found := spans.of(trace)
		for _, name := range wanted {
			if !holds(found, name) {
				return false
			}
		}
		return true
	})
	found := spans.of(trace)
	proposed := found["countersign-console: POST /v1/actions"]
	if proposed.parent != parent || found["countersign-executor: work execute"].parent != proposed.id {
		t.Errorf("the executor's work belongs to %+v, the proposal is %+v", found["countersign-executor: work execute"], proposed)
	}
	p.signal(t, syscall.SIGTERM)
	spans.mu.Lock()
	defer spans.mu.Unlock()
	for _, secret := range []string{"a secret of the customer", f.Keys.Executor, f.Keys.Proposer, "Bearer", "u-anna-schmidt"} {
		if bytes.Contains(spans.raw.Bytes(), []byte(secret)) {
			t.Errorf("the spans tell %q", secret)
		}
	}
}

func holds(found map[string]span, prefix string) bool {
	for name := range found {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Without an address for traces nothing is collected.
func TestTracesAreForThoseWhoAsk(t *testing.T) {
	for name, c := range map[string]struct {
		env  environment
		want bool
	}{
		"nothing":   {environment{}, false},
		"endpoint":  {environment{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, true},
		"of theirs": {environment{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, true},
		"disabled":  {environment{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, false},
		"none":      {environment{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		if got := exportsTraces(c.env.get); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
