package execution_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"countersign/action"
)

// oddly puts texts that cannot be kept into the answers of the shop: once for
// each order, in the first answer of a method. It tells who was named to it.
func (b *bench) oddly(odd map[string]string) (named func() []string) {
	b.T.Helper()
	var mu sync.Mutex
	var actors []string
	serve := b.shop.Config.Handler
	b.shop = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		serve.ServeHTTP(answer, r)
		mu.Lock()
		defer mu.Unlock()
		actors = append(actors, r.Header.Get("X-Actor"))
		body := answer.Body.String()
		for order, text := range odd {
			method, text, _ := strings.Cut(text, " ")
			if strings.Contains(r.URL.Path, order) && r.Method == method && answer.Code < 300 {
				body = `{"odd":` + text + "," + strings.TrimPrefix(strings.TrimSpace(body), "{")
				delete(odd, order)
			}
		}
		for name, values := range answer.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(answer.Code)
		w.Write([]byte(body)) // whoever asked may be gone
	}))
	b.T.Cleanup(b.shop.Close)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return actors
	}
}

// Whatever a system says, and whoever it is called for, the executor of the guide
// goes on, and no receipt is lost.
func TestExecutorInPython_GoesOnWhateverASystemSays(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	orSkipPython(t)
	t.Parallel()
	paced(t, func(t *trial) {
		const tool = "refunds.python_odd"
		b := newBench(t)
		b.hurried(tool, "max_polls: 6", "max_polls: 4")
		b.sweeping()
		b.full("ODD", 7)
		deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
		// Said by the desk when it has paid, or before, and what is known of it then.
		said := []struct{ text, known string }{{`POST "\ud800"`, "SUCCESS"}, {`POST 1e999`, "SUCCESS"}, {`POST NaN`, "UNKNOWN"}, {"POST " + deep, "UNKNOWN"},
			{`GET "\ud800"`, "SUCCESS"}, {`GET -Infinity`, "SUCCESS"}, {"", "SUCCESS"}}
		odd := map[string]string{}
		var actions []action.Action
		for i, s := range said {
			order := "ODD-00000" + string(rune('1'+i))
			if s.text != "" {
				odd[order] = s.text
			}
			actions = append(actions, b.approve(b.propose(tool, "张伟 "+order, `{"order_id":"`+order+`","amount":10,"reason":"arrived broken"}`, "")))
		}
		named := b.oddly(odd)
		p := b.python(tool)
		for i, s := range said {
			a := b.ends(actions[i].ID, action.Applied)
			if len(a.Attempts) != 1 || b.sent(a.ExecutionKey) != 1 || len(a.Receipts) != 1 || string(a.Receipts[0].Outcome) != s.known {
				t.Errorf("%.30s: sent %d times: %s, %+v", s.text, b.sent(a.ExecutionKey), story(a), a.Receipts)
			}
		}
		for _, actor := range named() {
			if !strings.HasPrefix(actor, "%E5%BC%A0%E4%BC%9F%20ODD-00000") && actor != "" {
				t.Errorf("named %q", actor)
			}
		}
		if strings.Contains(p.log.String(), "Error") {
			t.Errorf("it came upon what it does not know:\n%s", p.log.String())
		}
	})
}
