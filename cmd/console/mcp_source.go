package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	listPatience = time.Minute     // for a whole tool list
	goPatience   = 5 * time.Second // for a server to end when its input does
	maxList      = 16 << 20        // bytes
)

// mcpSource is an MCP server whose tools are asked for.
type mcpSource struct {
	address, token string // streamable HTTP
	command        string // or a program
	errs           io.Writer
}

// tools lists the server's tools as it wrote them: the order of fields and the
// digits of numbers are kept, which they are not by a decoded list.
func (s mcpSource) tools(ctx context.Context) ([]definition, error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	said := &transcript{}
	transport, wait, err := s.transport(ctx, said)
	if err != nil {
		return nil, err
	}
	names, err := toolNames(ctx, transport)
	if waitErr := wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return nil, fmt.Errorf("listing the server's tools: %w", err)
	}
	raw := said.tools()
	if len(raw) != len(names) {
		return nil, fmt.Errorf("listing the server's tools: it named %d, and its answers show %d", len(names), len(raw))
	}
	all := make([]definition, len(raw))
	for i, r := range raw {
		var t struct{ Name string }
		if json.Unmarshal(r, &t) != nil || t.Name != names[i] {
			return nil, errors.New("listing the server's tools: its answers cannot be told apart")
		}
		all[i] = definition{fmt.Sprintf("%+q", t.Name), r} // a name that is none may hold anything
	}
	return all, nil
}

func toolNames(ctx context.Context, transport mcp.Transport) ([]string, error) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "countersign", Version: productVersion()}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, errors.Join(err, session.Close())
		}
		names = append(names, t.Name)
	}
	return names, session.Close()
}

// transport is the way to the server, written down in said; wait ends it.
func (s mcpSource) transport(ctx context.Context, said *transcript) (mcp.Transport, func() error, error) {
	if s.address != "" {
		client := &http.Client{Transport: listening{s.token, said}, // and the token goes nowhere else
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		return &mcp.StreamableClientTransport{Endpoint: s.address, HTTPClient: client, DisableStandaloneSSE: true}, func() error { return nil }, nil
	}
	ctx, kill := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell may start others: they end together
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env, cmd.Stderr, cmd.WaitDelay = notOurs(os.Environ()), s.errs, goPatience
	in, err := cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, nil, fmt.Errorf("starting the server: %w", err)
	}
	read, write := io.Pipe()
	cmd.Stdout = io.MultiWriter(said.page(""), write)
	if err := cmd.Start(); err != nil {
		kill()
		return nil, nil, fmt.Errorf("starting the server: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() // how it ends does not matter once it has answered
		write.Close()
		close(ended)
	}()
	wait := func() error {
		defer time.AfterFunc(goPatience, kill).Stop()
		<-ended
		kill()
		return nil
	}
	return &mcp.IOTransport{Reader: read, Writer: in}, wait, nil
}

// notOurs is an environment without what is the console's alone: the program is
// somebody else's.
func notOurs(environment []string) []string {
	return slices.DeleteFunc(environment, func(v string) bool {
		return strings.HasPrefix(v, "COUNTERSIGN_") || strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "DATABASE_URL=") || strings.HasPrefix(v, "MCP_TOKEN=")
	})
}

// listening sends a token and writes answers down.
type listening struct {
	token string
	said  *transcript
}

func (l listening) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+l.token)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		body := resp.Body
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(body, l.said.page(resp.Header.Get("Content-Type"))), body}
	}
	return resp, err
}

// transcript is what a server said.
type transcript struct {
	mu    sync.Mutex
	size  int
	pages []*page
}

// page is one stream of messages.
type page struct {
	of     *transcript
	events bool // as text/event-stream, not as plain JSON
	text   bytes.Buffer
}

func (t *transcript) page(mediaType string) *page {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &page{of: t, events: strings.HasPrefix(mediaType, "text/event-stream")}
	t.pages = append(t.pages, p)
	return p
}

func (p *page) Write(b []byte) (int, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.size += len(b); p.of.size > maxList {
		return 0, errors.New("the server says too much")
	}
	return p.text.Write(b)
}

// tools are the definitions in all the lists that were answered, in their order.
func (t *transcript) tools() []json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []json.RawMessage
	for _, p := range t.pages {
		for d := json.NewDecoder(bytes.NewReader(p.json())); ; {
			var message struct {
				Result struct {
					Tools []json.RawMessage `json:"tools"`
				} `json:"result"`
			}
			if err := d.Decode(&message); err != nil {
				var other *json.UnmarshalTypeError
				if errors.As(err, &other) {
					continue // an answer of another form
				}
				break
			}
			all = append(all, message.Result.Tools...)
		}
	}
	return all
}

// json is the page without the framing of events.
func (p *page) json() []byte {
	if !p.events {
		return p.text.Bytes()
	}
	var text bytes.Buffer
	for line := range strings.Lines(p.text.String()) {
		if data, found := strings.CutPrefix(line, "data:"); found {
			text.WriteString(data)
		}
	}
	return text.Bytes()
}
