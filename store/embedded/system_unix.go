//go:build unix && !linux

package embedded

import "syscall"

// dieWithParent cannot be asked for on this system.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// canSeeProcesses reports whether processesIn can be relied on.
func canSeeProcesses() bool { return false }

// processesIn knows nothing here; PostgreSQL's own lock file has to do.
func processesIn(string) []int { return nil }
