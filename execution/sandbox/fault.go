package sandbox

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// FaultHeader switches a fault on for one request:
//
//	X-Sandbox-Fault: act-then-delay; delay_ms=1500
//
// Parameters are delay_ms, status, ignore_key (true) and those of Delivery.
const FaultHeader = "X-Sandbox-Fault"

// Kind names a fault.
type Kind string

// Every fault there is. A fault on a read works on the answer in the same way;
// lie, record-only, slow, duplicate, forget-key, lag and accept change nothing on
// a read.
const (
	LostRequest  Kind = "lost-request"   // the connection is closed before anything is done
	ErrorBefore  Kind = "error-before"   // status (default 500; any 3xx, 4xx or 5xx), nothing is done
	TooMany      Kind = "too-many"       // 429 with Retry-After, nothing is done
	DelayThenAct Kind = "delay-then-act" // nothing is known of the key for the delay, then it is done, caller or no caller
	Slow         Kind = "slow"           // the key is held for the delay ("in progress"), then it is done
	ActThenReset Kind = "act-then-reset" // done, then the connection is reset (RST) without an answer
	ActThenDelay Kind = "act-then-delay" // done, then the answer waits for the delay
	ErrorAfter   Kind = "error-after"    // done, then status (default 500)
	Malformed    Kind = "malformed"      // done, then 200 with the first half of the body
	Lie          Kind = "lie"            // answers as if done, writes nothing anywhere
	RecordOnly   Kind = "record-only"    // answers and records success under the key, the object is unchanged
	Duplicate    Kind = "duplicate"      // the request is delivered twice, the second time after the first is done
	ForgetKey    Kind = "forget-key"     // the key is not honoured: a repeated request is a new one
	Lag          Kind = "lag"            // answered at once, to be seen only after the delay; a process that ends before loses it
	Accept       Kind = "accept"         // refunds and service requests: 202, done after the delay, then a signed callback; see Delivery
	maxDelay          = 30 * time.Second // so that nothing acts later than a contract's fence allows for
	defaultDelay      = 5 * time.Second
)

var kinds = []Kind{LostRequest, ErrorBefore, TooMany, DelayThenAct, Slow, ActThenReset, ActThenDelay,
	ErrorAfter, Malformed, Lie, RecordOnly, Duplicate, ForgetKey, Lag, Accept}

// Fault is one way for a request to go wrong.
type Fault struct {
	Kind      Kind `json:"fault"`
	DelayMS   int  `json:"delay_ms,omitempty"`   // milliseconds, up to 30000; 0: 5000
	Status    int  `json:"status,omitempty"`     // for error-before and error-after, 300 to 599
	IgnoreKey bool `json:"ignore_key,omitempty"` // duplicate: the second delivery does not honour the key and acts again
	Delivery
}

func (f Fault) check() error {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("unknown fault %q; the faults are %v", f.Kind, kinds)
	case f.DelayMS < 0 || f.delay() > maxDelay:
		return fmt.Errorf("delay_ms is 0 to %d", maxDelay.Milliseconds())
	case f.Status != 0 && (f.Status < 300 || f.Status > 599):
		return fmt.Errorf("status is 300 to 599")
	}
	return f.Delivery.check(f.Kind)
}

func (f Fault) delay() time.Duration {
	if f.DelayMS == 0 {
		return defaultDelay
	}
	return time.Duration(f.DelayMS) * time.Millisecond
}

func (f Fault) status() int {
	if f.Status == 0 {
		return http.StatusInternalServerError
	}
	return f.Status
}

// headerFault reads FaultHeader; no header is no fault.
func headerFault(r *http.Request) (Fault, error) {
	text := r.Header.Get(FaultHeader)
	if text == "" {
		return Fault{}, nil
	}
	kind, params, err := mime.ParseMediaType(text)
	if err != nil {
		return Fault{}, fmt.Errorf("%s: %w", FaultHeader, err)
	}
	f := Fault{Kind: Kind(kind), Delivery: Delivery{Outcome: params["outcome"], Forged: params["forged"]}}
	for name, into := range map[string]*bool{"ignore_key": &f.IgnoreKey, "queued": &f.Queued, "early": &f.Early, "silent": &f.Silent} {
		*into = params[name] == "true"
	}
	for name, into := range map[string]*int{"delay_ms": &f.DelayMS, "status": &f.Status, "callback_ms": &f.CallbackMS, "deliveries": &f.Deliveries} {
		if params[name] == "" {
			continue
		}
		if *into, err = strconv.Atoi(params[name]); err != nil {
			return Fault{}, fmt.Errorf("%s: %s is a whole number", FaultHeader, name)
		}
	}
	return f, f.check()
}
