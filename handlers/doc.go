// Package handlers answers HTTP. One table of routes feeds the router, the
// OpenAPI document and the test that tries every role on every route. Pages and
// API share one shape of handler and one function for what goes wrong.
//
// A request passes observe (id, log, panics, headers), the router, and then
// serve: who may, what the address may hold, how long it may take. A handler
// returns what it refuses; fail turns it into a problem document (RFC 9457) or
// a page. Nothing here decides about an action: that is the domain's.
package handlers
