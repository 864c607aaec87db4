//go:build unix

package main

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// blow is something that happens to a process.
type blow struct {
	name   string
	strike func(context.Context, *stack)
}

// blows are all of them. Whatever is killed is started again.
func blows() []blow {
	executor := func(s *stack) *process { return s.executors[s.random.IntN(len(s.executors))] }
	return []blow{
		{"executor killed", func(_ context.Context, s *stack) { executor(s).signal(syscall.SIGKILL) }},
		{"executor paused beyond its lease", func(ctx context.Context, s *stack) {
			p := executor(s)
			p.signal(syscall.SIGSTOP)
			s.asleep.Go(func() {
				_ = pause(ctx, 5*time.Second) // woken early when all ends
				p.signal(syscall.SIGCONT)
			})
		}},
		{"console killed", func(_ context.Context, s *stack) { s.serve.signal(syscall.SIGKILL) }},
		{"sandbox killed", func(_ context.Context, s *stack) { s.desk.signal(syscall.SIGKILL) }},
		{"a backend of the console's PostgreSQL killed", func(_ context.Context, s *stack) { killBackend(s.dataOf("console/postgresql")) }},
		{"the console's PostgreSQL killed", func(_ context.Context, s *stack) { killServer(s.dataOf("console/postgresql")) }},
		{"a backend of the sandbox's PostgreSQL killed", func(_ context.Context, s *stack) { killBackend(s.dataOf("shop")) }},
	}
}

// dataOf is the data folder of a cluster.
func (s *stack) dataOf(cluster string) string { return filepath.Join(s.dir, cluster, "data") }

// strike deals one blow after the other, in turn but at random times and none
// while the console is down, until the returned function is called; it tells
// how many of each there were.
func (s *stack) strike(ctx context.Context) (end func() map[string]int) {
	ctx, cancel := context.WithCancel(ctx)
	dealt := map[string]int{}
	var under sync.WaitGroup
	under.Go(func() {
		all := blows()
		for i := 0; s.rounds == 0 || i < s.rounds*len(all); i++ {
			if i%len(all) == 0 {
				s.random.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			}
			spread := s.every/2 + time.Duration(s.random.Int64N(int64(s.every)))
			if pause(ctx, spread) != nil {
				return
			}
			if answering(ctx, s.console+"/readyz", http.StatusOK) != nil {
				return // it is not up again, or all ends
			}
			b := all[i%len(all)]
			b.strike(ctx, s)
			dealt[b.name]++
		}
	})
	return func() map[string]int {
		cancel()
		under.Wait()
		s.asleep.Wait()
		return maps.Clone(dealt)
	}
}

// killServer ends a PostgreSQL server as a power cut would.
func killServer(data string) {
	if pid := serverOf(data); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
	}
}

// killBackend ends one process of a PostgreSQL server, which then throws
// everybody out and recovers.
func killBackend(data string) {
	server := serverOf(data)
	children, err := os.ReadFile("/proc/" + strconv.Itoa(server) + "/task/" + strconv.Itoa(server) + "/children")
	if server == 0 || err != nil {
		return
	}
	pids := strings.Fields(string(children))
	for i := len(pids) - 1; i >= 0; i-- {
		title, err := os.ReadFile("/proc/" + pids[i] + "/cmdline")
		if pid, bad := strconv.Atoi(pids[i]); bad == nil && err == nil && strings.HasPrefix(string(title), "postgres: countersign") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
}

// serverOf is the process that runs a data folder, 0 when there is none.
func serverOf(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
