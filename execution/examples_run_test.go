package execution_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"countersign/action"
	"countersign/execution"
	"countersign/people"
	"countersign/store/stage"
)

// printed runs an example while something else happens, and returns what it prints.
func printed(t *testing.T, example, meanwhile func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = out }()
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r) // it ends with the example
		said <- string(text)
	}()
	go func() {
		defer w.Close()
		example()
	}()
	meanwhile()
	return <-said
}

// stock is a service with products, which knows nothing of the console.
type stock struct {
	mu     sync.Mutex
	prices map[string]float64
}

func (s *stock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, found := strings.CutPrefix(r.URL.Path, "/products/")
	var change struct{ Price float64 }
	if json.NewDecoder(r.Body).Decode(&change) != nil || r.Method != http.MethodPatch || !found || r.Header.Get("Authorization") != "Bearer stock" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	s.prices[id] = change.Price
	json.NewEncoder(w).Encode(map[string]any{"id": id, "price": change.Price})
}

// The examples of the package's documentation run against a console as they are.
// They share the process's environment and output, so this is not parallel.
func TestTheExamplesRun(t *testing.T) {
	b := newBench(t)
	products := &stock{prices: map[string]float64{}}
	warehouse := httptest.NewServer(products)
	t.Cleanup(warehouse.Close)
	key := func(client people.Client) string {
		_, key, err := b.People.CreateKey(t.Context(), stage.System(action.NewID("req")), client.ID, 0)
		b.must(err)
		return key
	}
	for name, value := range map[string]string{"CONSOLE": b.console.URL, "PROPOSER_KEY": key(b.Agent), "EXECUTOR_KEY": b.key, "ADMIN_KEY": key(b.Client("tools", b.Admin, people.RoleAdmin)),
		"WAREHOUSE": warehouse.URL, "WAREHOUSE_TOKEN": "stock"} {
		t.Setenv(name, value)
	}
	agent, err := execution.NewClient(b.console.URL, execution.NewSecret(os.Getenv("PROPOSER_KEY")), execution.Options{})
	b.must(err)
	if said := printed(t, ExampleTask, func() {}); !strings.HasPrefix(said, "budget-exhausted: ") || !strings.Contains(said, "\npaused writes [This was stopped") {
		t.Errorf("a loop prints %s", said)
	}

	b.start(b.config())
	said := printed(t, ExampleClient_Propose, func() { b.approve(b.proposedFor(agent, "10082")) })
	if !strings.HasPrefix(said, "applied [") {
		t.Errorf("proposing prints %s", said)
	}

	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt) // whoever else waits for it
	defer signal.Stop(interrupted)
	said = printed(t, ExampleExecutor, func() {
		b.eventually("the contract", func() bool { _, err := agent.Tool(t.Context(), "warehouse.set_price", 0); return err == nil })
		b.ends(b.approve(b.propose("warehouse.set_price", "u-anna-schmidt", `{"product_id":"mug-1","price":13.1}`, "")).ID, action.Applied)
		b.must(syscall.Kill(os.Getpid(), syscall.SIGINT))
	})
	if products.mu.Lock(); said != "" || products.prices["mug-1"] != 13.1 {
		t.Errorf("executing prints %q, and the prices are %v", said, products.prices)
	}
	products.mu.Unlock()
}

// proposedFor waits for the refund of an order to be proposed.
func (b *bench) proposedFor(agent *execution.Client, order string) (a action.Action) {
	b.T.Helper()
	b.eventually("a refund of order "+order, func() bool {
		list, err := agent.List(b.T.Context(), execution.Filter{Tool: refund, State: "proposed"})
		b.must(err)
		for _, item := range list.Items {
			if strings.Contains(string(item.Payload), order) {
				a = b.get(item.ID)
			}
		}
		return a.ID != ""
	})
	return a
}
