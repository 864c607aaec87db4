package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/approvals"
	"countersign/execution/api"
	"countersign/handlers"
	"countersign/people"
	"countersign/store/stage"
	"countersign/store/storetest"
)

// How the benchmarks measure: clients at a time, rounds whose median counts,
// and the length of a round.
const (
	benchClients = 16
	benchRounds  = 5
	benchRound   = 4 * time.Second
)

// bench is a console over HTTP, with what its callers need.
type bench struct {
	*stage.Stage
	url, proposer, executor string
	client                  *http.Client
	n                       atomic.Int64
}

func newBench(b *testing.B) *bench {
	b.Helper()
	debug.SetGCPercent(400) // as the program runs
	e := &bench{Stage: stage.New(b, storetest.New(b))}
	e.Approvals = approvals.New(e.DB, e.DB, e.Catalogue, e.DB, e.Approvals.Signer(), 1<<30) // as many open as it takes
	server := httptest.NewUnstartedServer(nil)
	handler, err := handlers.New(handlers.Config{Log: slog.New(slog.DiscardHandler), Approvals: e.Approvals, Triage: e.Triage, Cases: e.Cases, Callbacks: e.Callbacks, Reconcile: e.Reconciler, People: e.People,
		Sessions: people.NewSessions(e.DB, false), Reads: e.DB, Pages: e.DB, CaseReads: e.DB, RunReads: e.DB, Overview: e.DB, TaskReads: e.DB, Directory: e.DB,
		Stops: e.DB, Ready: e.DB.Ready,
		PublicURL: "http://" + server.Listener.Addr().String()})
	if err != nil {
		b.Fatal(err)
	}
	server.Config.Handler = handler
	server.Start()
	b.Cleanup(server.Close)
	e.url = server.URL
	e.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * benchClients}}
	e.proposer, e.executor = e.key(b, e.Agent), e.key(b, e.Executor)
	return e
}

func (e *bench) key(b *testing.B, c people.Client) string {
	b.Helper()
	_, text, err := e.People.CreateKey(context.Background(), stage.System(action.NewID("req")), c.ID, 0)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// benchPayload is about 1 KB, as the median of real proposals is smaller.
func benchPayload(n int64) string {
	return fmt.Sprintf(`{"order_id":"order-%012d","note":%q,"items":[{"sku":"A-1","quantity":2,"price":10.5},{"sku":"B-7","quantity":1,"price":99}],"notify":true,"channel":"email"}`,
		n, strings.Repeat("please handle with care, ", 34))
}

const benchTool = `name: bench.change_order
description: Change an order
input_schema:
  type: object
  required: [order_id]
  properties: { order_id: { type: string }, note: { type: string }, items: { type: array }, notify: { type: boolean }, channel: { type: string } }
`

// call makes one API request and decodes its answer.
func (e *bench) call(key, method, path string, header map[string]string, body, into any) error {
	text, ok := body.(string)
	if !ok {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	r, err := http.NewRequest(method, e.url+path, strings.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

func (e *bench) propose() (api.Action, error) {
	n := e.n.Add(1)
	body := fmt.Sprintf(`{"tool":"bench.change_order","actor":{"id":"user-%d","name":"Somebody"},"target":{"type":"order","id":"order-%012d"},"reason":"as asked","payload":%s}`,
		n%1000, n, benchPayload(n))
	var a api.Action
	err := e.call(e.proposer, "POST", "/v1/actions", map[string]string{"Idempotency-Key": "bench-" + strconv.FormatInt(n, 10)}, body, &a)
	return a, err
}

// perSecond runs work with many clients for a round and counts.
func perSecond(b *testing.B, work func(client int) error) float64 {
	b.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for client := range benchClients {
		wg.Go(func() {
			for time.Since(start) < benchRound {
				if err := work(client); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkPropose compares proposing over HTTP with pgbench running the same
// statement on the same cluster, in turn.
func BenchmarkPropose(b *testing.B) {
	e := newBench(b)
	e.Tool(benchTool)
	script := e.pgbenchScript(b)
	var ours, reference, ratios []float64
	for b.Loop() {
		for i := range benchRounds {
			reference = append(reference, e.pgbench(b, script))
			ours = append(ours, perSecond(b, func(int) error { _, err := e.propose(); return err }))
			ratios = append(ratios, ours[i]/reference[i]) // of one moment: the machine is not ours alone
		}
	}
	b.ReportMetric(median(ours), "proposals/s")
	b.ReportMetric(median(reference), "pgbench/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCycle measures propose, decide, claim, attempt and receipt over HTTP.
func BenchmarkCycle(b *testing.B) {
	e := newBench(b)
	e.Tool(benchTool)
	browsers := make([]*http.Client, benchClients)
	for i := range browsers {
		browsers[i] = e.signIn(b, fmt.Sprintf("bench%d", i))
	}
	var rates []float64
	for b.Loop() {
		for range benchRounds {
			rates = append(rates, perSecond(b, func(client int) error { return e.cycle(browsers[client]) }))
		}
	}
	b.ReportMetric(median(rates), "cycles/s")
	b.ReportMetric(0, "ns/op")
}

// signIn makes a person in support and signs them in.
func (e *bench) signIn(b *testing.B, username string) *http.Client {
	b.Helper()
	p := e.Person(username, people.RoleSupport)
	const password = "a long enough password"
	if _, err := e.People.SetPassword(context.Background(), stage.System(action.NewID("req")), p.ID, password); err != nil {
		b.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: e.client.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if err := e.post(browser, "/login", url.Values{"username": {username}, "password": {password}}); err != nil {
		b.Fatal(err)
	}
	return browser
}

// post sends a form as a page of the console does.
func (e *bench) post(browser *http.Client, path string, fields url.Values) error {
	r, err := http.NewRequest("POST", e.url+path, strings.NewReader(fields.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := browser.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("POST %s: %d", path, resp.StatusCode)
	}
	return nil
}

func (e *bench) cycle(browser *http.Client) error {
	a, err := e.propose()
	if err != nil {
		return err
	}
	if err := e.post(browser, "/actions/"+a.ID+"/decisions", url.Values{"decision": {"approve"}, "proposal_hash": {a.ProposalHash}, "revision": {"1"}}); err != nil {
		return err
	}
	if err := e.call(e.executor, "GET", "/v1/actions/"+a.ID, nil, "", &a); err != nil {
		return err
	}
	claim, attempt := action.NewID("clm"), action.NewID("att")
	if err := e.call(e.executor, "POST", "/v1/confirmations/"+a.Confirmation.Ref+"/claim", nil, api.Claim{ClaimID: claim, ProposalHash: a.ProposalHash}, nil); err != nil {
		return err
	}
	if err := e.call(e.executor, "POST", "/v1/actions/"+a.ID+"/attempts", nil, api.Attempt{AttemptID: attempt, ClaimID: claim, Fingerprint: "sha256:0"}, nil); err != nil {
		return err
	}
	return e.call(e.executor, "POST", "/v1/actions/"+a.ID+"/receipts", nil,
		api.Receipt{ReceiptID: action.NewID("rcp"), AttemptID: attempt, ClaimID: claim, Outcome: "SUCCESS", HTTPStatus: 200}, nil)
}

// BenchmarkQueue compares the approvals queue over HTTP, first and 200th page,
// at a million actions with ten thousand.
func BenchmarkQueue(b *testing.B) {
	small, large := newQueue(b, 10_001), newQueue(b, 1_000_000)
	for _, page := range []int{1, 200} {
		b.Run(fmt.Sprintf("page=%d", page), func(b *testing.B) {
			var at [2][]float64
			for b.Loop() {
				for range 200 {
					for i, q := range []*longQueue{small, large} {
						at[i] = append(at[i], q.read(b, page))
					}
				}
			}
			p99 := func(v []float64) float64 { slices.Sort(v); return v[len(v)*99/100] }
			b.ReportMetric(p99(at[0]), "p99-ms-10k")
			b.ReportMetric(p99(at[1]), "p99-ms-1M")
			b.ReportMetric(median(at[1])/median(at[0]), "ratio-p50")
			b.ReportMetric(p99(at[1])/p99(at[0]), "ratio-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// longQueue is a console with many waiting actions and somebody who reads them.
type longQueue struct {
	*bench
	browser *http.Client
	pages   map[int]string // address of a page
}

func newQueue(b *testing.B, n int) *longQueue {
	b.Helper()
	q := &longQueue{bench: newBench(b), pages: map[int]string{1: "/approvals"}}
	q.Tool(benchTool)
	q.browser = q.signIn(b, "reader1")
	a, err := q.propose()
	if err != nil {
		b.Fatal(err)
	}
	storetest.Multiply(b, storetest.Owner(q.DSN), a.ID, n)
	next := regexp.MustCompile(`/approvals\?after=([A-Za-z0-9_-]+)`)
	path := "/approvals"
	for page := 2; page <= 200; page++ {
		m := next.FindSubmatch(q.page(b, path))
		if m == nil {
			b.Fatalf("page %d has no next one", page-1)
		}
		path = string(m[0])
		q.pages[page] = path
	}
	return q
}

func (q *longQueue) page(b *testing.B, path string) []byte {
	b.Helper()
	resp, err := q.browser.Get(q.url + path)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`class="rows"`)) {
		b.Fatalf("GET %s: %d %v", path, resp.StatusCode, err)
	}
	return text
}

// read returns how long a page takes, in milliseconds.
func (q *longQueue) read(b *testing.B, page int) float64 {
	start := time.Now()
	q.page(b, q.pages[page])
	return float64(time.Since(start).Microseconds()) / 1000
}
