package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// streamLife is how long a stream lasts; the browser then asks for a new one.
const streamLife = time.Hour

// stream sends a person's page what is new, as server-sent events, each time that
// it is something else. It ends with the session. A page beyond those that one
// person may have open so is refused, and is read without.
func (s *server) stream(w http.ResponseWriter, r *http.Request, c caller, news func(ctx context.Context) (string, error)) error {
	free, ok := s.streams.take(c.session.Person.ID)
	if !ok {
		return busy("You have too many pages open. This one does not say what is new: open it again to see, or close some.", "streams", retryAfterBusy)
	}
	defer free()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flusher := http.NewResponseController(w)
	over := time.NewTimer(streamLife)
	defer over.Stop()
	said := ""
	for {
		changed := s.Reads.Changes()
		if lives, err := s.Sessions.Lives(r); !lives || err != nil {
			return nil // the session is over, or nobody can tell: so is the stream
		}
		now, err := news(r.Context())
		if err != nil {
			return nil // the browser asks again
		}
		line := ":\n\n" // keeps the connection
		if now != said {
			line, said = now, now
		}
		if _, err := w.Write([]byte(line)); err != nil || flusher.Flush() != nil {
			return nil
		}
		if !s.changed(r.Context(), changed, over, betweenNews) {
			return nil
		}
	}
}

// oneLine is a text as the data of one event.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
