package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"countersign/action"
	"countersign/execution"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where Handler serves.
const Path = "/mcp"

// Handler serves the protocol as streamable HTTP. Every request carries an API
// key of the console as its bearer token, which the console is asked about first, and does what that key may do: the
// handler has no key of its own and keeps no session, so there is none to take
// over. A request is one message of at most action.MaxBodyBytes: what was once a
// batch is refused, in every version of the protocol. Requests from web pages of another origin are refused, and so are those
// that reach a loopback address under a name of somebody else.
func Handler(console *execution.Client, o Options) http.Handler {
	streamable := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return New(console.As(bearer(r)), o)
	}, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: action.MaxBodyBytes, PropagateRequestCancellation: true})
	mux := http.NewServeMux()
	mux.Handle(Path, http.NewCrossOriginProtection().Handler(withKey(console, oneMessage(streamable))))
	return mux
}

// keyTime bounds how long a key is asked about.
const keyTime = 5 * time.Second

// withKey lets only requests with a key through that the console takes, or that
// nobody can say of now: then whatever is called says so. The answer to any other
// is that of the protocol's authorization: 401, and the scheme to use.
func withKey(console *execution.Client, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, challenge, said := bearer(r), "Bearer", "Send an API key of the console: Authorization: Bearer …."
		if key.Set() {
			ctx, cancel := context.WithTimeout(r.Context(), keyTime)
			err := console.As(key).Check(ctx)
			cancel()
			if !execution.HasCode(err, action.Unauthorized) {
				next.ServeHTTP(w, r)
				return
			}
			challenge, said = `Bearer error="invalid_token"`, "The console does not take this API key: it is unknown, over or withdrawn. Ask for another one."
		}
		text, err := json.Marshal(refusalOf(action.Refuse(action.Unauthorized, said)))
		if err != nil {
			http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		w.Write(append(text, '\n')) // whoever asked may be gone
	})
}

// oneMessage refuses JSON-RPC batches, which would make one request, small
// enough, do thousands of things at a time. The protocol has none since 2025-06-18.
func oneMessage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bufio.NewReader(http.MaxBytesReader(w, r.Body, action.MaxBodyBytes))
		first, err := body.ReadByte()
		for err == nil && strings.ContainsRune(" \t\r\n", rune(first)) {
			first, err = body.ReadByte()
		}
		if err == nil && first == '[' {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batches are not taken: send each message in a request of its own."}}`+"\n")
			return
		}
		if err == nil {
			err = body.UnreadByte()
		}
		if err != nil { // there is no body, or none that can be read: told by whoever reads it
			body = bufio.NewReader(http.NoBody)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{body, r.Body}
		next.ServeHTTP(w, r)
	})
}

func bearer(r *http.Request) execution.Secret {
	scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !found || !strings.EqualFold(scheme, "Bearer") || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return execution.Secret{}
	}
	return execution.NewSecret(key)
}
