package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	callbackTimeout = 10 * time.Second // of one delivery
	callbackLease   = 15 * time.Second // after which another process may deliver it again
	callbackTries   = 12               // failures in a row before it is given up
	callbackBatch   = 8
)

// Signing says with which secrets callbacks are signed, so that a receiver can
// be moved from one to the next.
type Signing string

// The stages of a rotation.
const (
	SignCurrent Signing = "current"
	SignBoth    Signing = "both"
	SignNext    Signing = "next"
)

// CallBack tells a desk, Refunds or Service, where to send its callbacks and how
// to sign them, until told otherwise. Callbacks that were made before there was
// an address wait for it. An empty signing is SignCurrent.
func (s *Sandbox) CallBack(ctx context.Context, system, address string, signing Signing) error {
	if signing == "" {
		signing = SignCurrent
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(address) > 2000 {
		return errors.New("the address of callbacks is http(s)://host/path")
	}
	if !slices.Contains([]Signing{SignCurrent, SignBoth, SignNext}, signing) {
		return errors.New("signing is current, both or next")
	}
	_, err = s.db.ExecContext(ctx, `
		INSERT INTO sandbox.callback_targets (system, url, signing) VALUES ($1, $2, $3)
		ON CONFLICT (system) DO UPDATE SET url = excluded.url, signing = excluded.signing`, system, address, string(signing))
	if err != nil {
		return fmt.Errorf("setting the address of callbacks: %w", err)
	}
	return nil
}

// setCallback is CallBack over HTTP.
func (s *Sandbox) setCallback(system string) controlHandler {
	return func(ctx context.Context, _ *http.Request, body []byte) (answer, error) {
		var target struct {
			URL     string  `json:"url"`
			Signing Signing `json:"signing"`
		}
		if err := strictJSON(body, &target); err != nil {
			return badChange("The body is {url, signing?: current, both or next}.")
		}
		if err := s.CallBack(ctx, system, target.URL, target.Signing); err != nil {
			return badChange(err.Error())
		}
		return say(target, 0)
	}
}

// news is what a desk tells about a key by callback.
type news struct {
	system, key string
	about       string // refund, service_request: what the type of the message begins with
	how         Delivery
	asked       map[string]any // what was asked for
	trace       string         // traceparent of the request that asked
}

// callBack puts the callbacks in the outbox, in the transaction that they tell of.
func (n news) callBack(ctx context.Context, tx *sql.Tx, status string, a answer) error {
	after := time.Duration(n.how.CallbackMS) * time.Millisecond
	id := "msg_" + rand.Text() // of the false one too
	if n.how.Forged != "" && status != queued {
		if err := n.post(ctx, tx, id, succeeded, n.how.Forged, 1, after, answer{}); err != nil {
			return err
		}
	}
	if n.how.Silent {
		return nil
	}
	return n.post(ctx, tx, id, status, "", max(n.how.Deliveries, 1), after, a)
}

func (n news) post(ctx context.Context, tx *sql.Tx, id, status, forged string, deliveries int, after time.Duration, a answer) error {
	body, err := n.message(status, a)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO sandbox.callbacks (system, key, message_id, forged, body, trace, remaining, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8 * interval '1 millisecond')`,
		n.system, n.key, id, forged, string(body), n.trace, deliveries, after.Milliseconds())
	if err != nil {
		return fmt.Errorf("posting a callback: %w", err)
	}
	return nil
}

// message is the body of a callback: what the key's operation says, and what it
// was asked for.
func (n news) message(status string, a answer) ([]byte, error) {
	data := map[string]any{}
	if a.body != nil {
		if err := json.Unmarshal(a.body, &data); err != nil {
			return nil, fmt.Errorf("reading what to call back: %w", err)
		}
	}
	maps.Copy(data, n.asked)
	data["operation_id"], data["status"] = n.key, status
	if a.status < 400 {
		data["code"], data["detail"] = nil, nil
	}
	body, err := json.Marshal(map[string]any{
		"type": n.about + "." + strings.ToLower(status), "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "data": data,
	})
	if err != nil {
		return nil, fmt.Errorf("writing a callback: %w", err)
	}
	return body, nil
}

// letter is a callback on its way.
type letter struct {
	id                 int64
	system             string
	messageID, forged  string
	body, url, signing string
	trace              string
}

// deliverDue delivers the callbacks that are due, some at a time, those about
// one key in their order. A process that dies on the way leaves them to be
// delivered again.
func (s *Sandbox) deliverDue(ctx context.Context) (found bool, err error) {
	letters, err := s.takeLetters(ctx)
	if err != nil {
		return false, err
	}
	var under sync.WaitGroup
	for _, l := range letters {
		under.Go(func() {
			status, err := s.deliver(ctx, l)
			if err := errors.Join(err, s.delivered(ctx, l, status)); err != nil && ctx.Err() == nil {
				slog.Info("sandbox callback not delivered", "message", l.messageID, "error", err)
			}
		})
	}
	under.Wait()
	return len(letters) > 0, nil
}

func (s *Sandbox) takeLetters(ctx context.Context) ([]letter, error) {
	rows, err := s.db.QueryContext(ctx, `
		UPDATE sandbox.callbacks c SET due_at = clock_timestamp() + $1 * interval '1 millisecond'
		  FROM sandbox.callback_targets t
		 WHERE t.system = c.system AND c.id IN (
		       SELECT due.id FROM sandbox.callbacks due JOIN sandbox.callback_targets USING (system)
		        WHERE due.remaining > 0 AND due.due_at <= clock_timestamp()
		          AND NOT EXISTS (SELECT 1 FROM sandbox.callbacks earlier WHERE earlier.system = due.system
		                             AND earlier.key = due.key AND earlier.id < due.id AND earlier.remaining > 0)
		        ORDER BY due.due_at, due.id LIMIT $2 FOR UPDATE OF due SKIP LOCKED)
		RETURNING c.id, c.system, c.message_id, c.forged, c.body, t.url, t.signing, c.trace`, callbackLease.Milliseconds(), callbackBatch)
	if err != nil {
		return nil, fmt.Errorf("taking callbacks: %w", err)
	}
	defer rows.Close()
	var letters []letter
	for rows.Next() {
		var l letter
		if err := rows.Scan(&l.id, &l.system, &l.messageID, &l.forged, &l.body, &l.url, &l.signing, &l.trace); err != nil {
			return nil, fmt.Errorf("taking callbacks: %w", err)
		}
		letters = append(letters, l)
	}
	return letters, rows.Err()
}

// deliver sends one callback; status 0: there was no answer.
func (s *Sandbox) deliver(ctx context.Context, l letter) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callbackTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader([]byte(l.body)))
	if err != nil {
		return 0, fmt.Errorf("making a callback: %w", err)
	}
	req.GetBody = nil // one delivery is one request
	req.Header.Set("Content-Type", "application/json")
	at := time.Now()
	if l.forged == forgedStale {
		at = at.Add(-time.Hour)
	}
	req.Header.Set("webhook-id", l.messageID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if l.trace != "" {
		req.Header.Set("traceparent", l.trace)
	}
	if l.forged != forgedUnsigned {
		req.Header.Set("webhook-signature", s.tokens.signatures(l, at))
	}
	resp, err := s.caller.Do(req)
	if err != nil {
		return 0, fmt.Errorf("calling back: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody) // only the status counts
	return resp.StatusCode, nil
}

// newCaller makes the client of callbacks: one request each, as it is.
func newCaller() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// delivered notes a delivery, or a failure: that is tried again later, and
// again, and in the end given up. A forged callback is sent once.
func (s *Sandbox) delivered(ctx context.Context, l letter, status int) error {
	good := status >= 200 && status < 300
	_, err := s.db.ExecContext(ctx, `
		UPDATE sandbox.callbacks
		   SET last_status = $2, delivered = delivered + CASE WHEN $3 THEN 1 ELSE 0 END, tries = CASE WHEN $3 THEN 0 ELSE tries + 1 END,
		       remaining = CASE WHEN $3 THEN remaining - 1 WHEN forged <> '' OR tries + 1 >= $4 THEN 0 ELSE remaining END,
		       due_at = clock_timestamp() + CASE WHEN $3 THEN 0 ELSE least(250 * 2 ^ tries, 10000) END * interval '1 millisecond'
		 WHERE id = $1`, l.id, status, good, callbackTries)
	if err != nil {
		return fmt.Errorf("noting a delivery: %w", err)
	}
	return nil
}
