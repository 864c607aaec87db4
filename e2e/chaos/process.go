//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// process is a program that is started again whenever it ends.
type process struct {
	name    string
	command func() *exec.Cmd

	log  *os.File
	over chan struct{} // closed when it has ended for good

	mu      sync.Mutex
	running *exec.Cmd
	stopped bool
}

// restartAfter is the time between an end and the next start.
const restartAfter = 200 * time.Millisecond

// keepRunning starts a program, and again whenever it ends, until stop.
func keepRunning(logs, name string, command func() *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(filepath.Join(logs, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	p := &process{name: name, command: command, log: log, over: make(chan struct{})}
	cmd, err := p.launch()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go p.watch(cmd)
	return p, nil
}

// launch starts it once; nil when it is to stay stopped.
func (p *process) launch() (*exec.Cmd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, nil
	}
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.running = cmd
	return cmd, nil
}

func (p *process) watch(cmd *exec.Cmd) {
	defer close(p.over)
	for cmd != nil {
		err := cmd.Wait()
		fmt.Fprintf(p.log, "-- %s ended: %v\n", p.name, err)
		time.Sleep(restartAfter)
		if cmd, err = p.launch(); err != nil {
			fmt.Fprintln(p.log, "--", err)
			return
		}
	}
}

// signal sends a signal to the process that runs now. One that has just ended
// needs none.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.running.Process.Signal(s)
}

// stop ends it for good, in order and, when that takes too long, at once.
func (p *process) stop() error {
	p.mu.Lock()
	p.stopped = true
	_ = p.running.Process.Signal(syscall.SIGCONT) // it may be paused
	_ = p.running.Process.Signal(syscall.SIGTERM)
	p.mu.Unlock()
	select {
	case <-p.over:
	case <-time.After(30 * time.Second):
		p.signal(syscall.SIGKILL)
		<-p.over
	}
	return p.log.Close()
}
