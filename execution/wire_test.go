package execution

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/action/contract"
)

const priceContract = `
name: catalog.set_price
mode: write
input_schema:
  type: object
  required: [product_id, new_price]
  properties: { product_id: { type: string }, new_price: { type: number } }
output_schema: { type: object, required: [version], properties: { version: { type: integer } } }
target: { type: product, id: /product_id }
object_version: required
http: { method: POST, path: "/products/{product_id}/price" }
execution: { proves: completed, definite_failures: [400, 404, 422], conflicts: [412], timeout: 10s }
`

const pricePayload = `{"new_price":105,"product_id":"SKU-4411"}`

func parseContract(t *testing.T, text string) *contract.Contract {
	t.Helper()
	c, err := contract.Parse([]byte(text))
	if err != nil {
		t.Fatalf("parsing a contract: %v", err)
	}
	return c
}

// rawServer hands every request it reads to act, which writes what it likes
// and returns whether the connection lives on.
func rawServer(t *testing.T, act func(net.Conn, *http.Request) bool) (base string, requests *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	requests = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					requests.Add(1)
					if !act(conn, req) {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

func always() error { return nil }

func openGate() *gate { return &gate{may: always, by: time.Now().Add(time.Minute)} }

// sendPrice sends the price change to a base URL and classifies the answer.
func sendPrice(t *testing.T, ctx context.Context, base string, g *gate, roots *tls.Config) (reply, contract.Outcome) {
	t.Helper()
	c := parseContract(t, priceContract)
	wire, err := c.Request(base, []byte(pricePayload), "exk_1", "8")
	if err != nil {
		t.Fatal(err)
	}
	req, err := wireRequest(wire, NewSecret("write-token"))
	if err != nil {
		t.Fatal(err)
	}
	got := sendOnce(ctx, req, g, roots)
	return got, c.Classify(got.answer(1))
}

func respond(conn net.Conn, status int, header, body string) {
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		status, http.StatusText(status), len(body), header, body)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			log.Print(err)
		}
	}
	conn.Close()
}

// A server that answers the first request on a connection and on the second
// acts and then resets it.
func resetsWarm(t *testing.T) (string, *atomic.Int64) {
	var seen sync.Map
	return rawServer(t, func(conn net.Conn, _ *http.Request) bool {
		if _, again := seen.LoadOrStore(conn, true); !again {
			respond(conn, 200, "", `{"version":9}`)
			return true
		}
		reset(conn)
		return false
	})
}

// postPrice sends the price change as anybody would, and reads what comes back.
func postPrice(t *testing.T, client *http.Client, base string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, base, strings.NewReader(pricePayload))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "exk_1")
	resp, err := client.Do(req)
	if err != nil {
		return // it was reset
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func TestOneRequestPerAttempt(t *testing.T) {
	t.Run("Go's own client repeats it", func(t *testing.T) { // or the next test could not fail
		for range 100 { // where it is slow it does not keep a connection, and has none to repeat on
			base, requests := resetsWarm(t)
			client := &http.Client{Transport: &http.Transport{}}
			for range 2 {
				postPrice(t, client, base)
			}
			if requests.Load() == 3 {
				return
			}
		}
		t.Error("never 3 requests, which a silent repetition makes of 2")
	})
	t.Run("sendOnce does not", func(t *testing.T) {
		base, requests := resetsWarm(t)
		for range 2 {
			if _, o := sendPrice(t, t.Context(), base, openGate(), nil); o.Result != action.Success {
				t.Errorf("outcome %+v", o)
			}
		}
		if n := requests.Load(); n != 2 {
			t.Errorf("%d requests for 2 attempts", n)
		}
	})
	t.Run("acts, then resets", func(t *testing.T) {
		base, requests := rawServer(t, func(conn net.Conn, _ *http.Request) bool { reset(conn); return false })
		got, o := sendPrice(t, t.Context(), base, openGate(), nil)
		if o.Result != action.Unknown || !got.sent || got.answer(1).Err != contract.ErrReset {
			t.Errorf("outcome %+v of %+v", o, got)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("a gate lets one connection through", func(t *testing.T) {
		g := openGate()
		if err := errors.Join(g.dial()); err != nil {
			t.Fatal(err)
		}
		if g.dial() == nil {
			t.Error("a second connection was opened")
		}
	})
}

func TestReport28_OnlyListedStatusesAreFailures(t *testing.T) {
	unknown, failure, success := action.Unknown, action.Failure, action.Success
	for status, want := range map[int]action.Outcome{
		200: success, 201: success, 202: success, 206: unknown, 207: unknown,
		301: unknown, 302: unknown, 303: unknown, 307: unknown, 308: unknown,
		400: failure, 401: unknown, 403: unknown, 404: failure, 408: unknown, 409: unknown, 410: unknown,
		412: failure, 422: failure, 425: unknown, 429: unknown, 500: unknown, 502: unknown, 503: unknown, 504: unknown,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			base, requests := rawServer(t, func(conn net.Conn, _ *http.Request) bool {
				respond(conn, status, "Location: /elsewhere\r\nRetry-After: 0\r\n", `{"version":9}`)
				return true
			})
			got, o := sendPrice(t, t.Context(), base, openGate(), nil)
			if o.Result != want || got.status != status {
				t.Errorf("outcome %+v of status %d, want %s", o, got.status, want)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestBrokenAnswersAreUnknown(t *testing.T) {
	for name, broken := range map[string]struct {
		act func(net.Conn)
		err string // as the contract names it
	}{
		"no answer": {func(net.Conn) {}, contract.ErrReset},
		"body cut off": {func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"version\":9}")
		}, contract.ErrBody},
		"definite status, body cut off": {func(c net.Conn) { io.WriteString(c, "HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\n{") }, contract.ErrBody},
		"no HTTP":                       {func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\r\n\r\n") }, contract.ErrOther},
		"too long": {func(c net.Conn) {
			respond(c, 200, "", `{"version":9,"x":"`+strings.Repeat("x", maxReply)+`"}`)
		}, contract.ErrBody},
		"not JSON":           {func(c net.Conn) { respond(c, 200, "", "<html>ok</html>") }, ""},
		"half the JSON":      {func(c net.Conn) { respond(c, 200, "", `{"version"`) }, ""},
		"not as promised":    {func(c net.Conn) { respond(c, 200, "", `{"ok":true}`) }, ""},
		"nothing where some": {func(c net.Conn) { respond(c, 204, "", "") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			base, requests := rawServer(t, func(c net.Conn, _ *http.Request) bool { broken.act(c); return false })
			got, o := sendPrice(t, t.Context(), base, openGate(), nil)
			if o.Result != action.Unknown || o.Code != contract.CodeExecutionError || got.answer(1).Err != broken.err {
				t.Errorf("outcome %+v, error %q (%v)", o, got.answer(1).Err, got.err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// overWhen is a context whose time is over when something has happened.
type overWhen struct {
	context.Context
	happened chan struct{}
}

func (o overWhen) Done() <-chan struct{} { return o.happened }

func (o overWhen) Err() error {
	select {
	case <-o.happened:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestReport24_TimeoutIsUnknown(t *testing.T) {
	release, arrived := make(chan struct{}), make(chan struct{})
	base, requests := rawServer(t, func(net.Conn, *http.Request) bool { close(arrived); <-release; return false })
	defer close(release)
	got, o := sendPrice(t, overWhen{t.Context(), arrived}, base, openGate(), nil)
	if o.Result != action.Unknown || got.answer(1).Err != contract.ErrTimeout {
		t.Errorf("outcome %+v of %v", o, got.err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestNothingIsSent(t *testing.T) {
	late := func(base string) (reply, contract.Outcome) {
		g := &gate{by: time.Now(), may: func() error { return errLate }}
		return sendPrice(t, t.Context(), base, g, nil)
	}
	t.Run("the time is over", func(t *testing.T) {
		base, requests := rawServer(t, func(c net.Conn, _ *http.Request) bool { respond(c, 200, "", `{"version":9}`); return false })
		got, o := late(base)
		if got.sent || o.Result != action.Failure || o.Code != contract.CodeNotSent || !errors.Is(got.err, errLate) {
			t.Errorf("outcome %+v of %+v", o, got)
		}
		if n := requests.Load(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		got, o := sendPrice(t, t.Context(), "http://127.0.0.1:1", openGate(), nil) // a port that is handed out to nobody
		if got.sent || o.Result != action.Failure || o.Code != contract.CodeNotSent {
			t.Errorf("outcome %+v of %v", o, got.err)
		}
	})
	t.Run("a handshake that does not end", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts by itself, says nothing
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		g := openGate()
		got, o := sendPrice(t, ctx, "https://"+listener.Addr().String(), g, nil)
		if got.sent || o.Code != contract.CodeNotSent {
			t.Errorf("outcome %+v of %v", o, got.err)
		}
		if err := g.pass(&net.TCPConn{}); !errors.Is(err, errShut) {
			t.Errorf("after it was reported as not sent: %v", err)
		}
	})
}

func TestGateOpensOnceAndStaysShut(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go io.Copy(io.Discard, far)
	asked := 0
	g := &gate{by: time.Now().Add(time.Minute), may: func() error { asked++; return nil }}
	conn := &gatedConn{near, g}
	for range 3 {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if sent, _ := g.seal(); !sent {
		t.Error("what was sent reads as not sent")
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, errShut) {
		t.Errorf("written after the end: %v", err)
	}
	sealed := openGate()
	if sent, _ := sealed.seal(); sent || sealed.pass(near) == nil {
		t.Error("a gate that was shut first let something through")
	}
}

func TestRequestOnTheWire(t *testing.T) {
	var head http.Header
	var host, uri string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head, host, uri = r.Header, r.Proto, r.RequestURI
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"9"`)
		io.WriteString(w, `{"version":9}`)
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	got, o := sendPrice(t, t.Context(), server.URL, openGate(), &tls.Config{RootCAs: roots})
	if o.Result != action.Success || o.Proves != action.ProvesCompleted || got.objectVersion() != "9" {
		t.Fatalf("outcome %+v of %+v", o, got)
	}
	for name, want := range map[string]string{"Idempotency-Key": "exk_1", "If-Match": `"8"`, "Authorization": "Bearer write-token",
		"Content-Type": "application/json", "Accept-Encoding": ""} {
		if value := head.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if host != "HTTP/1.1" || uri != "/products/SKU-4411/price" {
		t.Errorf("%s %s", host, uri)
	}
	if _, o := sendPrice(t, t.Context(), server.URL, openGate(), nil); o.Code != contract.CodeNotSent {
		t.Errorf("an unknown certificate: %+v", o)
	}
}
