// Package mcpserver lets an agent propose over the Model Context Protocol. It
// is a thin client of the console's API: it proposes and reads. Nothing in it
// decides, executes, settles or stores a contract, whatever the key might do.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"countersign/action"
	"countersign/execution"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are what the agent behind the protocol may not choose for itself.
type Options struct {
	Entry   string       // the entry point it comes from: only tools that this loads are there; "" names none, and every tool is listed
	ActorID string       // on whose behalf everything is proposed; "": each proposal says
	Version string       // of the program, told to clients
	Logger  *slog.Logger // nil: slog.Default()

	Stopping <-chan struct{} // closed when the program is about to end: what waits on purpose stops waiting
}

const instructions = `People approve here what you want done. Find the tool with list_tools, propose with propose_action, and give the user the page on which a person decides. Nothing has happened before that: see get_action. Tell a customer only what what_may_i_say allows, and never that something is done because you proposed it. A repeated proposal is the same action, not a second one.`

// agent serves one key.
type agent struct {
	console *execution.Client
	options Options
}

// New makes a server that speaks for whoever the client's key belongs to.
func New(console *execution.Client, o Options) *mcp.Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Title: "Countersign", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	a := &agent{console, o}
	for _, t := range a.tools() {
		no, writes := false, !t.reads
		server.AddTool(&mcp.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: json.RawMessage(t.input),
			Annotations: &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: t.reads, IdempotentHint: writes, DestructiveHint: &no, OpenWorldHint: &no}},
			a.serve(t))
	}
	return server
}

// Serve speaks with one client over two streams, such as standard input and
// output, until the client closes them or ctx ends.
func Serve(ctx context.Context, server *mcp.Server, in io.Reader, out io.Writer) error {
	err := server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("speaking with the agent: %w", err)
	}
	return nil
}

// unclosed leaves a stream that is not ours open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// serve calls a tool and tells what came of it. A refusal is told to the agent,
// so that it can do better; it is no failure of the protocol.
func (a *agent) serve(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := t.run(ctx, req.Params.Arguments)
		if err != nil {
			a.options.Logger.Info("refused", "tool", t.name, "error", err)
			answer = refusalOf(err)
		}
		text, encodeErr := json.Marshal(answer)
		if encodeErr != nil {
			return nil, fmt.Errorf("encoding an answer: %w", encodeErr)
		}
		return &mcp.CallToolResult{IsError: err != nil, StructuredContent: json.RawMessage(text),
			Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
	}
}

// arguments reads the arguments of a call as strictly as the console reads a
// request: nothing is guessed, and numbers stay as they were sent.
func arguments[T any](raw json.RawMessage) (T, error) {
	var v T
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	return v, action.DecodeStrict(raw, &v)
}
