package action

import (
	"strings"
	"testing"
	"time"
)

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		before := time.Now().UnixMilli()
		id := NewID("act")
		after := time.Now().UnixMilli()
		if !ValidID("act", id) || seen[id] {
			t.Fatalf("%s is invalid or was made twice", id)
		}
		seen[id] = true
		var ms int64 // the first 10 characters are the milliseconds
		for _, c := range id[4:14] {
			ms = ms<<5 | int64(strings.IndexRune(crockford, c))
		}
		if ms < before || ms > after {
			t.Fatalf("%s says %d, made between %d and %d", id, ms, before, after)
		}
	}
}

// Every character that should be random takes every value.
func TestRandomCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		make  func() string
		fixed int
	}{
		"id":     {func() string { return NewID("evt") }, len("evt_") + 10},
		"ref":    {NewRef, len("cnf_")},
		"secret": {func() string { return NewSecret(20) }, 0},
	} {
		values := map[int]map[byte]bool{}
		for range 2000 {
			text := c.make()
			for i := c.fixed; i < len(text); i++ {
				if values[i] == nil {
					values[i] = map[byte]bool{}
				}
				values[i][text[i]] = true
			}
		}
		for i, v := range values {
			if len(v) != len(crockford) {
				t.Errorf("%s: character %d took %d of 32 values", name, i, len(v))
			}
		}
	}
}

func TestNewRefAndSecret(t *testing.T) {
	if ref := NewRef(); len(ref) != 36 || !ValidID("cnf", ref) || NewRef() == ref {
		t.Errorf("ref %s", ref)
	}
	for n, want := range map[int]int{0: 0, 1: 2, 16: 26, 20: 32, 32: 52} {
		if s := NewSecret(n); len(s) != want || strings.Trim(s, crockford) != "" {
			t.Errorf("NewSecret(%d) = %q, want %d characters", n, s, want)
		}
	}
}

func TestValidID(t *testing.T) {
	good := "act_01JQ8ZK3V7M4N5P6Q7R8S9T0AB"
	if !ValidID("act", good) {
		t.Errorf("%s refused", good)
	}
	for _, bad := range []string{
		"", "act", "act_", good[:len(good)-1], good + "0", strings.ToLower(good), "evt_" + good[4:], good[4:], " " + good, good + "\n",
		"act_81JQ8ZK3V7M4N5P6Q7R8S9T0AB", // more than 128 bits
		"act_01JQ8ZK3V7M4N5P6Q7R8S9T0AI", "act_01JQ8ZK3V7M4N5P6Q7R8S9T0AU", "act_01JQ8ZK3V7M4-5P6Q7R8S9T0AB", "act_01JQ8ZK3V7M4N5P6Q7R8S9T0é",
	} {
		if ValidID("act", bad) {
			t.Errorf("%q accepted", bad)
		}
	}
	if ValidID("cnf", "cnf_"+good[4:]) || ValidID("act", "act_"+NewRef()[4:]) {
		t.Error("a reference and an id are taken for each other")
	}
}
