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

// versionText tells the module's version, or the commit it was built from.
func versionText() string {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		commit, changed := "", ""
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
	}
	return fmt.Sprintf("countersign %s, %s, %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
