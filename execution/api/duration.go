package api

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a length of time in a request: a Go duration such as "15m", of
// whole microseconds, or a number of whole seconds.
type Duration time.Duration

// UnmarshalJSON reads "15m" or 900.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var seconds int64
	if json.Unmarshal(b, &seconds) == nil {
		if seconds > int64(1<<62/time.Second) || seconds < 0 {
			return fmt.Errorf("%s seconds is out of range", b)
		}
		*d = Duration(time.Duration(seconds) * time.Second)
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("%s is not a duration such as \"15m\" or a number of seconds", b)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"15m\"", text)
	}
	if parsed%time.Microsecond != 0 {
		return fmt.Errorf("%q is finer than a microsecond", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes it as a Go duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }
