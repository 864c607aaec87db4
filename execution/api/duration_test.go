package api

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{`"15m"`: 15 * time.Minute, `900`: 15 * time.Minute, `"1.5s"`: 1500 * time.Millisecond, `"3us"`: 3 * time.Microsecond,
		`"1ns"`: -1, `"0.0000005s"`: -1, `"1h0.5us"`: -1, `-1`: -1, `"soon"`: -1, `99999999999999999`: -1, `true`: -1} {
		var d Duration
		err := json.Unmarshal([]byte(text), &d)
		if refused := want < 0; (err != nil) != refused || !refused && time.Duration(d) != want {
			t.Errorf("%s reads as %s, %v", text, time.Duration(d), err)
		}
	}
}
