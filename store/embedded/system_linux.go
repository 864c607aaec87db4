package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent asks for a fast shutdown when this process dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}

// canSeeProcesses reports whether processesIn can be relied on.
func canSeeProcesses() bool {
	_, err := os.Readlink("/proc/self/cwd")
	return err == nil
}

// processesIn lists the processes whose working folder is dir: a PostgreSQL
// server and its helpers work in their data folder.
func processesIn(dir string) []int {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil
	}
	var pids []int
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != real {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
