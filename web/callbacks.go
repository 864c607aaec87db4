package web

import "time"

// CallbacksPage lists what business systems told by themselves and what could
// not be joined with anything so far, at /triage/callbacks.
type CallbacksPage struct {
	Callbacks []Callback // the latest first
	More      bool       // there are older ones
}

// Callback is one message, with what is known of it.
type Callback struct {
	At     time.Time
	Tool   Text
	ID     Text // of the message
	Key    Text // that it names
	Says   Found
	Until  time.Time // it waits for its action until then
	Waits  bool
	Action *LinkedAction // whose key it is, when there is one that was not sent yet
}
