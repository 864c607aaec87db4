package handlers

import (
	"net/http"
	"time"

	"countersign/action"
	"countersign/execution/api"
	"countersign/triage"

	"github.com/go-chi/httprate"
)

// maxCallback bounds the body of a callback, in bytes.
const maxCallback = 64 << 10

// takeCallback takes what a business system tells of an operation by itself.
// Nothing is answered with success that is not kept.
func (s *server) takeCallback(w http.ResponseWriter, r *http.Request, _ caller) error {
	body, err := readBodyUpTo(w, r, maxCallback)
	if err != nil {
		return err
	}
	joined, err := s.Callbacks.Take(r.Context(), parameter(r, "tool"), triage.Webhook{ID: r.Header.Get("webhook-id"),
		Timestamp: r.Header.Get("webhook-timestamp"), Signature: r.Header.Get("webhook-signature"), Body: body})
	if action.IsCode(err, action.Unauthorized) && s.failures.OnLimit(w, r, httprate.CanonicalizeIP(host(r.RemoteAddr))) {
		return busy("Too many requests that nobody known signed came from this address. Wait a minute.", "unknown-keys", time.Minute)
	}
	if err != nil {
		return err
	}
	if !joined {
		return respond(w, http.StatusAccepted, api.CallbackTaken{Status: "parked"})
	}
	return respond(w, http.StatusOK, api.CallbackTaken{Status: "joined"})
}

// callbackRoutes are for business systems, which sign what they send.
func callbackRoutes() []route {
	return []route{
		{post, "/v1/callbacks/{tool}", "takeCallback", anyone(), (*server).takeCallback, 0, &call{status: 200, body: map[string]any{}, answer: api.CallbackTaken{},
			headers: webhookHeaders(),
			about: "Tell what became of an operation, signed as Standard Webhooks say. Where in the body its execution key and its outcome are, the tool's contract says. " +
				"200: it was joined to its action, now or before. 202: nothing was attempted under its key so far; it is kept and joined when that appears.",
			refuses: changing(action.Unauthorized, action.RateLimited, action.IdempotencyKeyInUse, action.UnknownTool)}},
	}
}

func webhookHeaders() []param {
	return []param{{name: "webhook-id", about: "Names the message: repeating it has no further effect.", required: true},
		{name: "webhook-timestamp", about: "When it was signed, in seconds since 1970; at most five minutes off.", required: true},
		{name: "webhook-signature", about: "v1, and the base64 of HMAC-SHA256 over id.timestamp.body; several are separated by spaces.", required: true}}
}
