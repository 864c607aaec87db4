package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

func version(_ context.Context, c *call) error {
	if _, err := c.parse(); err != nil {
		return err
	}
	fmt.Fprintln(c.out, versionText())
	return nil
}

// versionText is what console version prints.
func versionText() string {
	return fmt.Sprintf("countersign %s, %s, %s/%s", productVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// productVersion is the module's version, or the commit it was built from; what
// other programs are told.
func productVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	version, commit, changed := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", with changes"
		}
	}
	if commit != "" {
		version += " (commit " + commit[:min(12, len(commit))] + changed + ")"
	}
	return version
}
