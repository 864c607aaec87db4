//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"countersign/execution/sandbox"
)

const (
	shopCommand = "sandbox"
	tokensEnv   = "CHAOS_TOKENS" // of the sandbox, as JSON
)

// runShop is the business system's process.
func runShop(args []string) error {
	flags := flag.NewFlagSet(shopCommand, flag.ExitOnError)
	dsn := flags.String("database", "", "`URL` of its database")
	addr := flags.String("addr", "", "`ADDRESS` to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var tokens sandbox.Tokens
	if err := json.Unmarshal([]byte(os.Getenv(tokensEnv)), &tokens); err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	shop, err := sandbox.Open(ctx, *dsn, tokens)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return errors.Join(err, shop.Close())
	}
	server := &http.Server{Handler: shop.Handler(), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, shop.Close())
	}
	return shop.Close()
}

// shop is how the harness reaches the business system.
type shop struct {
	url    string
	tokens sandbox.Tokens
}

// fault is one way to go wrong and the share of requests that it hits.
type fault struct {
	name string
	rate float64
	body map[string]any
}

// beyond is a delay that no caller waits for: its timeout is a second.
const beyond = 1600

// writeFaults hit requests for refunds, readFaults questions.
func writeFaults() []fault {
	return []fault{
		{"request lost", .02, map[string]any{"fault": "lost-request"}},
		{"503, nothing done", .02, map[string]any{"fault": "error-before", "status": 503}},
		{"429, nothing done", .01, map[string]any{"fault": "too-many"}},
		{"late, then done", .01, map[string]any{"fault": "delay-then-act", "delay_ms": beyond}},
		{"slow beyond the timeout", .01, map[string]any{"fault": "slow", "delay_ms": beyond}},
		{"done, connection reset", .02, map[string]any{"fault": "act-then-reset"}},
		{"done, answer too late", .02, map[string]any{"fault": "act-then-delay", "delay_ms": beyond}},
		{"done, 500", .02, map[string]any{"fault": "error-after", "status": 500}},
		{"done, half an answer", .01, map[string]any{"fault": "malformed"}},
		{"delivered twice", .02, map[string]any{"fault": "duplicate"}},
		{"done, but only in word", .003, map[string]any{"fault": "lie"}},
		{"recorded, not paid", .003, map[string]any{"fault": "record-only"}},
		{"accepted, paid later, called back twice", .01, map[string]any{"fault": "accept", "delay_ms": 1500, "deliveries": 2}},
		{"called back before the answer", .005, map[string]any{"fault": "accept", "early": true}},
		{"called back late", .005, map[string]any{"fault": "accept", "delay_ms": 500, "callback_ms": 8000}},
		{"a forged callback first", .005, map[string]any{"fault": "accept", "delay_ms": 1500, "outcome": "refused", "forged": "wrong"}},
		{"accepted, refused later", .005, map[string]any{"fault": "accept", "delay_ms": 1500, "outcome": "refused"}},
		{"accepted, never called back", .005, map[string]any{"fault": "accept", "delay_ms": 1500, "silent": true}},
	}
}

func readFaults() []fault {
	return []fault{
		{"question lost", .005, map[string]any{"fault": "lost-request"}},
		{"question answered 503", .01, map[string]any{"fault": "error-before", "status": 503}},
		{"question answered too late", .003, map[string]any{"fault": "act-then-delay", "delay_ms": beyond}},
	}
}

// arm switches the faults on.
func (s *shop) arm(ctx context.Context) error {
	for method, faults := range map[string][]fault{"POST": writeFaults(), "GET": readFaults()} {
		for _, f := range faults {
			body := map[string]any{"system": sandbox.Refunds, "method": method, "count": 0, "rate": f.rate}
			if method == "GET" {
				body["path"] = "/refunds/o" // orders and operations, not health
			}
			for k, v := range f.body {
				body[k] = v
			}
			if err := s.call(ctx, http.MethodPost, "/faults", s.tokens.Control, body, nil); err != nil {
				return fmt.Errorf("arming %q: %w", f.name, err)
			}
		}
	}
	return nil
}

// disarm switches them off, for looking at what was done.
func (s *shop) disarm(ctx context.Context) error {
	return s.call(ctx, http.MethodDelete, "/faults", s.tokens.Control, nil, nil)
}

// callBack tells where callbacks go.
func (s *shop) callBack(ctx context.Context, address string) error {
	return s.call(ctx, http.MethodPut, "/refunds/callback", s.tokens.Control, map[string]string{"url": address}, nil)
}

// call asks the business system; what it may do is what the token may.
func (s *shop) call(ctx context.Context, method, path, token string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return errors.Join(err, fmt.Errorf("%s %s answers %d: %s", method, path, resp.StatusCode, answer))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// listed is one page of what the business system has.
type listed[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next_cursor"`
}

// pages reads all pages of a list.
func pages[T any](ctx context.Context, s *shop, path, token string, query url.Values) ([]T, error) {
	var all []T
	query.Set("limit", "500")
	for {
		var page listed[T]
		if err := s.call(ctx, http.MethodGet, path+"?"+query.Encode(), token, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all, nil
		}
		query.Set("cursor", *page.Next)
	}
}

// paid is what the business system really did: money by order, and operations
// by key.
type paid struct {
	orders     map[string]float64
	operations map[string]operation
}

type operation struct {
	Key        string  `json:"key"`
	Status     string  `json:"status"`
	Executions int     `json:"executions"`
	Object     *string `json:"object_id"`
}

func (s *shop) paid(ctx context.Context) (paid, error) {
	p := paid{map[string]float64{}, map[string]operation{}}
	type order struct {
		ID       string  `json:"order_id"`
		Refunded float64 `json:"refunded"`
	}
	orders, err := pages[order](ctx, s, "/refunds/orders", s.tokens.RefundsRead, url.Values{})
	if err != nil {
		return p, err
	}
	for _, o := range orders {
		p.orders[o.ID] = o.Refunded
	}
	now := time.Now()
	operations, err := pages[operation](ctx, s, "/refunds/operations", s.tokens.RefundsRead, url.Values{
		"from": {now.Add(-24 * time.Hour).UTC().Format(time.RFC3339)}, "to": {now.Add(time.Hour).UTC().Format(time.RFC3339)}})
	for _, o := range operations {
		p.operations[o.Key] = o
	}
	return p, err
}

// hits are how often each fault struck, and how many callbacks were taken, from
// the business system's own logs.
func (s *shop) hits(ctx context.Context) (map[string]int, error) {
	type entry struct {
		Method string `json:"method"`
		Fault  string `json:"fault"`
	}
	type letter struct {
		Delivered int `json:"delivered"`
	}
	hits := map[string]int{}
	entries, err := pages[entry](ctx, s, "/faults/log", s.tokens.Control, url.Values{"system": {sandbox.Refunds}})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Fault != "" {
			hits[e.Method+" "+e.Fault]++
		}
	}
	letters, err := pages[letter](ctx, s, "/faults/callbacks", s.tokens.Control, url.Values{})
	for _, l := range letters {
		hits["callbacks taken"] += l.Delivered
	}
	return hits, err
}
