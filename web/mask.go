package web

import (
	"slices"
	"strings"
)

// masked reports whether pointer, or something above it, is one of the masks.
// "*" in a mask stands for any one key or index.
func masked(mask []string, pointer string) bool {
	return slices.ContainsFunc(mask, func(m string) bool { return covers(m, pointer) })
}

// maskedInside reports whether a mask reaches something below pointer.
func maskedInside(mask []string, pointer string) bool {
	return slices.ContainsFunc(mask, func(m string) bool {
		parts, depth := strings.Split(m, "/"), strings.Count(pointer, "/")+1
		return len(parts) > depth && covers(strings.Join(parts[:depth], "/"), pointer)
	})
}

// covers compares a mask with the beginning of a pointer, part by part.
func covers(mask, pointer string) bool {
	want, have := strings.Split(mask, "/"), strings.Split(pointer, "/")
	if len(want) > len(have) {
		return false
	}
	for i, w := range want {
		if w != have[i] && w != "*" {
			return false
		}
	}
	return true
}
