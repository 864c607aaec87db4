package execution

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxReply bounds the answer of a business system, in bytes.
const maxReply = 1 << 20

var (
	errShut   = errors.New("the request was given up before it was sent")
	errDialed = errors.New("a request has one connection")
)

// gate stands before the first byte of one request. It opens at most once, and
// once shut it stays shut: after seal nothing can leave any more, whatever the
// transport's goroutines still have in hand.
type gate struct {
	may func() error // asked right before the first byte
	by  time.Time    // nothing is written after it

	mu           sync.Mutex
	dialed       bool
	sent, sealed bool
	why          error // it was shut before anything left
}

// dial lets one connection through.
func (g *gate) dial() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dialed || g.sealed {
		return errDialed
	}
	g.dialed = true
	return nil
}

func (g *gate) pass(conn net.Conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.sealed:
		return errShut
	case g.sent:
		return nil
	}
	if err := g.may(); err != nil {
		g.sealed, g.why = true, err
		return err
	}
	if err := conn.SetWriteDeadline(g.by); err != nil {
		g.sealed = true
		return err
	}
	g.sent = true
	return nil
}

// seal shuts the gate and reports whether anything may have left, and why it was
// not let through.
func (g *gate) seal() (sent bool, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealed = true
	return g.sent, g.why
}

// gatedConn is a connection behind a gate.
type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Write(p []byte) (int, error) {
	if err := c.gate.pass(c.Conn); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// oneShot is a transport for one request: HTTP/1.1, one connection of its own,
// nothing kept, no proxy, nothing unpacked.
func oneShot(g *gate, roots *tls.Config) *http.Transport {
	dialer := &net.Dialer{}
	plain := func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := g.dial(); err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Transport{
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := plain(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &gatedConn{conn, g}, nil
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := plain(ctx, network, address)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, secure(roots, address))
			if err := secured.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return &gatedConn{secured, g}, nil
		},
	}
}

func secure(base *tls.Config, address string) *tls.Config {
	if base == nil {
		base = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config := base.Clone()
	config.NextProtos = []string{"http/1.1"}
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

// reply is what came back from a business system.
type reply struct {
	status int
	header http.Header
	body   []byte
	sent   bool  // something may have left
	err    error // why there is no status, or no complete body
}

// sendOnce sends a request at most once, over a connection of its own, and
// follows nothing. The context bounds all of it.
func sendOnce(ctx context.Context, req *http.Request, g *gate, roots *tls.Config) reply {
	transport := oneShot(g, roots)
	defer transport.CloseIdleConnections()
	req = req.WithContext(ctx)
	req.GetBody = nil // nothing to repeat it from
	resp, err := transport.RoundTrip(req)
	if err != nil {
		// The transport may tell first that its connection is closed.
		sent, why := g.seal()
		return reply{sent: sent, err: cmp.Or(why, err)}
	}
	body, err := readBounded(resp)
	g.seal() // not earlier: an answer may come while the request is still being written
	return reply{resp.StatusCode, resp.Header, body, true, err}
}

var errTooLong = errors.New("the answer is too long")

func readBounded(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err == nil && len(body) > maxReply {
		err = errTooLong
	}
	return body, err
}
