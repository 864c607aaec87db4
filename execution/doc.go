// Package execution is the Go library of the console: a client for the
// programs that propose, a runner for those that execute, and direct calls of
// tools that only read.
//
// [Client] speaks the HTTP API. Every call that changes something names what
// it is, so the client repeats it safely when an answer is lost.
//
// [Executor] does the work that the console offers: it claims a confirmation,
// looks again whether the action may still run, records an attempt, sends
// exactly one request as the tool's contract says, and reports what is known
// of it. It keeps nothing on disk: whatever it held when it died is free again,
// or an unknown outcome, when its lease lapses.
//
// [Tools] reads with tools that change nothing. [Task] keeps a loop to a budget.
package execution
