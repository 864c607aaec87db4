package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// proxy stands between the store and PostgreSQL, understands enough of the
// protocol to see writes, and breaks connections at the worst moment.
type proxy struct {
	DSN      string
	upstream string

	mu     sync.Mutex
	before int  // cut this many writes before they reach the server
	after  int  // cut this many writes after they were committed, before the answer is read
	dies   bool // after the next cut nothing gets through any more
	dead   bool
	cuts   int
	open   map[net.Conn]bool
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	q := u.Query()
	name := ".s.PGSQL." + q.Get("port")
	p := &proxy{upstream: filepath.Join(q.Get("host"), name), open: map[net.Conn]bool{}}
	dir, err := os.MkdirTemp("/tmp", "proxy-") // a socket's path has to be short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, name))
	must(t, err)
	t.Cleanup(func() { listener.Close(); p.set((*proxy).closeAll) })
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	p.DSN = u.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

// set changes what is cut from now on.
func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// done returns how many connections were cut since last time, and lets
// everything through.
func (p *proxy) done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.cuts
	p.before, p.after, p.dies, p.dead, p.cuts = 0, 0, false, false, 0
	return n
}

func (p *proxy) closeAll() {
	for c := range p.open {
		c.Close()
	}
}

// keep remembers a connection, unless nothing gets through.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.dead
}

// cut takes one of the cuts that are left in n.
func (p *proxy) cut(n *int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *n == 0 {
		return false
	}
	*n--
	p.cuts++
	if p.dies {
		p.dead = true
		p.closeAll()
	}
	return true
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client) || !p.keep(server) {
		return
	}
	s := &session{proxy: p, writes: map[string]bool{}}
	done := make(chan struct{}, 2)
	go func() { s.forward(client, server); done <- struct{}{} }()
	go func() { s.backward(server, client); done <- struct{}{} }()
	<-done
}

// session is one connection through the proxy.
type session struct {
	*proxy
	writes map[string]bool // prepared statements that write

	mu      sync.Mutex
	writing bool // a write is on its way
}

// forward passes what the store sends.
func (s *session) forward(client, server net.Conn) {
	var length [4]byte
	if _, err := io.ReadFull(client, length[:]); err != nil { // the startup message has no type
		return
	}
	start := make([]byte, binary.BigEndian.Uint32(length[:])-4)
	if _, err := io.ReadFull(client, start); err != nil {
		return
	}
	if _, err := server.Write(append(length[:], start...)); err != nil {
		return
	}
	for {
		m, err := message(client)
		if err != nil {
			return
		}
		switch m[0] {
		case 'P': // Parse: name, text
			name, rest, _ := bytes.Cut(m[5:], []byte{0})
			s.writes[string(name)] = bytes.Contains(rest, []byte("INSERT INTO events"))
		case 'B': // Bind: portal, name
			_, rest, _ := bytes.Cut(m[5:], []byte{0})
			name, _, _ := bytes.Cut(rest, []byte{0})
			if s.writes[string(name)] {
				if s.cut(&s.before) {
					return
				}
				s.mu.Lock()
				s.writing = true
				s.mu.Unlock()
			}
		}
		if _, err := server.Write(m); err != nil {
			return
		}
	}
}

// backward passes what the server answers. The answer to a write is held back
// until the server is ready for the next: then it is committed.
func (s *session) backward(server, client net.Conn) {
	var held []byte
	for {
		m, err := message(server)
		if err != nil {
			return
		}
		held = append(held, m...)
		s.mu.Lock()
		writing := s.writing
		if m[0] == 'Z' {
			s.writing = false
		}
		s.mu.Unlock()
		if writing && m[0] != 'Z' {
			continue
		}
		if writing && s.cut(&s.after) {
			return
		}
		if _, err := client.Write(held); err != nil {
			return
		}
		held = nil
	}
}

// message reads one message with its type and length.
func message(from net.Conn) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<26 {
		return nil, errors.New("no message of PostgreSQL")
	}
	m := append(head, make([]byte, n-4)...)
	_, err := io.ReadFull(from, m[5:])
	return m, err
}
