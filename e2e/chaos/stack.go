//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"countersign/execution"
	"countersign/execution/sandbox"
	"countersign/store/embedded"

	"github.com/goccy/go-yaml"
)

// tool is what is run here.
const tool = "refunds.refund_order"

// patience bounds what is waited for while something starts again.
const patience = 90 * time.Second

// stack is everything that runs.
type stack struct {
	options
	dir     string
	random  *mathrand.Rand // of the blows, used by one goroutine
	console string         // base URL
	shop    shop
	books   *embedded.Cluster // the business system's database

	serve     *process
	desk      *process
	executors []*process
	asleep    sync.WaitGroup // executors that are paused

	proposer, reader *execution.Client
	approvers        []*approver
}

// start brings everything up: the business system, the console with its own
// PostgreSQL, the people and programs, the contracts, the executors.
func (s *stack) start(ctx context.Context) error {
	if err := os.MkdirAll(s.logs(), 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	for _, step := range []func(context.Context) error{s.build, s.startShop, s.startConsole, s.startExecutors} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) logs() string { return filepath.Join(s.dir, "logs") }
func (s *stack) data() string { return filepath.Join(s.dir, "console") }

// stop ends everything, what was started last first.
func (s *stack) stop() error {
	var errs []error
	for _, p := range append(s.executors, s.serve, s.desk) {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	if s.books != nil {
		errs = append(errs, s.books.Kill()) // nothing in it is worth an orderly end
	}
	return errors.Join(errs...)
}

func (s *stack) build(ctx context.Context) error {
	if s.program != "" {
		return nil
	}
	s.program = filepath.Join(s.dir, "countersign")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.program, "countersign/cmd/console").CombinedOutput(); err != nil {
		return fmt.Errorf("building the console: %w\n%s", err, out)
	}
	return nil
}

func (s *stack) startShop(ctx context.Context) error {
	var err error
	s.books, err = embedded.Start(ctx, embedded.Options{Dir: filepath.Join(s.dir, "shop"), Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		return err
	}
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	s.shop.url = "http://" + addr
	for _, token := range []*string{&s.shop.tokens.RefundsRead, &s.shop.tokens.RefundsWrite, &s.shop.tokens.Control} {
		*token = rand.Text()
	}
	secret := make([]byte, 32)
	rand.Read(secret) // it never fails
	s.shop.tokens.RefundsSecret = "whsec_" + base64.StdEncoding.EncodeToString(secret)
	tokens, err := json.Marshal(s.shop.tokens)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.desk, err = keepRunning(s.logs(), "sandbox", func() *exec.Cmd {
		cmd := exec.Command(self, shopCommand, "--database", s.books.DSN(embedded.Database), "--addr", addr)
		cmd.Env = append(os.Environ(), tokensEnv+"="+string(tokens))
		return cmd
	})
	if err != nil {
		return err
	}
	if err := answering(ctx, s.shop.url+"/refunds/health", http.StatusUnauthorized); err != nil {
		return err
	}
	return s.shop.call(ctx, http.MethodPost, "/faults/orders", s.shop.tokens.Control,
		map[string]any{"prefix": orders, "count": s.refunds, "amount": orderPaid}, nil)
}

func (s *stack) startConsole(ctx context.Context) error {
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	s.console = "http://" + addr
	s.serve, err = keepRunning(s.logs(), "console", func() *exec.Cmd {
		return s.command("serve", "--addr", addr, "--data", s.data())
	})
	if err != nil {
		return err
	}
	if err := answering(ctx, s.console+"/readyz", http.StatusOK); err != nil {
		return err
	}
	contracts, err := s.contracts()
	if err != nil {
		return err
	}
	if _, err := s.admin(ctx, "", "tools", "apply", contracts); err != nil {
		return err
	}
	if _, err := s.admin(ctx, s.shop.tokens.RefundsSecret+"\n", "callbacks", "add", tool, "--secret-stdin"); err != nil {
		return err
	}
	if err := s.shop.callBack(ctx, s.console+"/v1/callbacks/"+tool); err != nil {
		return err
	}
	if _, err := s.admin(ctx, "", "user", "add", "max", "--role", "admin"); err != nil {
		return err
	}
	for _, name := range []string{"mia", "jonas"} {
		password := rand.Text()
		if _, err := s.admin(ctx, password+"\n", "user", "add", name, "--role", "support", "--password-stdin"); err != nil {
			return err
		}
		s.approvers = append(s.approvers, &approver{console: s.console, name: name, password: password})
	}
	if s.proposer, err = s.client(ctx, "proposer"); err != nil {
		return err
	}
	s.reader, err = s.client(ctx, "reader")
	return err
}

// command is the console's program, in an environment without surprises.
func (s *stack) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}
	return cmd
}

// admin runs one of the console's commands on its database.
func (s *stack) admin(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := s.command(append(args, "--data", s.data())...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("console %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), ctx.Err()
}

// key makes a program with a role and returns its API key.
func (s *stack) key(ctx context.Context, role string) (string, error) {
	out, err := s.admin(ctx, "", "client", "add", "chaos-"+role, "--role", role, "--owner", "max")
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 2 {
		return "", fmt.Errorf("no key in %q", out)
	}
	return strings.TrimSpace(lines[len(lines)-2]), nil
}

func (s *stack) client(ctx context.Context, role string) (*execution.Client, error) {
	key, err := s.key(ctx, role)
	if err != nil {
		return nil, err
	}
	return execution.NewClient(s.console, execution.NewSecret(key), execution.Options{})
}

// hurried is what differs in the contract that runs here from the one that
// comes with the sandbox: its times are short, and one person decides on what
// is cheap even before the order was read.
func hurried() map[string]map[string]any {
	return map[string]map[string]any{
		"approval": {"ttl": "2h", "confirmation_ttl": "2h", "rules": []any{
			map[string]any{"when": "true", "role": "support", "approvals": 1},
			map[string]any{"when": fmt.Sprintf("payload.amount >= %.2f", dear), "role": "support", "approvals": 2},
		}},
		"execution":    {"timeout": "1s", "lease": "4s", "fence_after": "7s", "deadline": "30s", "verify": map[string]any{"tries": 3, "window": "6s"}},
		"status_query": {"max_polls": 4},
	}
}

// contracts writes the refund desk's contracts with short times to a folder.
func (s *stack) contracts() (string, error) {
	dir := filepath.Join(s.dir, "contracts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder: %w", err)
	}
	names, err := fs.Glob(sandbox.Contracts(), "*refund*.yaml")
	if err != nil {
		return "", err
	}
	found := false
	for _, name := range names {
		raw, err := fs.ReadFile(sandbox.Contracts(), name)
		if err != nil {
			return "", err
		}
		c := map[string]any{}
		if err := yaml.Unmarshal(raw, &c); err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		execution, _ := c["execution"].(map[string]any)
		if c["name"] == tool {
			found = true
			for part, values := range hurried() {
				into, _ := c[part].(map[string]any)
				if part == "status_query" {
					into, _ = execution[part].(map[string]any)
				}
				if into == nil {
					return "", fmt.Errorf("%s has no %s", name, part)
				}
				for k, v := range values {
					into[k] = v
				}
			}
		} else if execution != nil {
			execution["timeout"] = "1s"
		}
		text, err := json.Marshal(c)
		if err != nil {
			return "", fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
			return "", err
		}
	}
	if !found {
		return "", fmt.Errorf("the sandbox has no contract %s", tool)
	}
	return dir, nil
}

// Where an executor finds its secrets.
const (
	keyEnv   = "CHAOS_KEY"
	readEnv  = "CHAOS_READ_TOKEN"
	writeEnv = "CHAOS_WRITE_TOKEN"
)

func (s *stack) startExecutors(ctx context.Context) error {
	key, err := s.key(ctx, "executor")
	if err != nil {
		return err
	}
	var config bytes.Buffer
	err = yaml.NewEncoder(&config).Encode(map[string]any{
		"console": s.console, "key": map[string]string{"env": keyEnv}, "concurrency": 8, "wait": "5s", "poll": "50ms", "stop_within": "5s", "probe_after": "1s",
		"systems": []any{map[string]any{"tools": []string{"refunds.*"}, "base_url": s.shop.url + "/refunds",
			"read_token": map[string]string{"env": readEnv}, "write_token": map[string]string{"env": writeEnv}}},
	})
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "executor.yaml")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		return err
	}
	for i := range s.options.executors {
		p, err := keepRunning(s.logs(), fmt.Sprintf("executor-%d", i+1), func() *exec.Cmd {
			cmd := s.command("executor", "--config", file)
			cmd.Env = append(cmd.Env, keyEnv+"="+key, readEnv+"="+s.shop.tokens.RefundsRead, writeEnv+"="+s.shop.tokens.RefundsWrite)
			return cmd
		})
		if err != nil {
			return err
		}
		s.executors = append(s.executors, p)
	}
	return nil
}

// freeAddress is one that nobody listens on, for a process that comes back to
// the same one.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// answering waits until an address answers with a status.
func answering(ctx context.Context, address string, status int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == status {
				return nil
			}
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%s does not answer %d: %w", address, status, err)
		}
	}
}

// pause waits, or fails when ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
