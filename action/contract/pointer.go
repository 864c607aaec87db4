package contract

import "strings"

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")
var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// join adds one reference token to a JSON Pointer.
func join(pointer, token string) string { return pointer + "/" + escapeToken.Replace(token) }

// splitPointer returns the reference tokens of a JSON Pointer.
func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = unescapeToken.Replace(t)
	}
	return tokens
}

func joinTokens(tokens []string) string {
	pointer := ""
	for _, t := range tokens {
		pointer = join(pointer, t)
	}
	return pointer
}

// place turns a field name or a JSON Pointer into a JSON Pointer.
func place(nameOrPointer string) string {
	if isPointer(nameOrPointer) {
		return nameOrPointer
	}
	return join("", nameOrPointer)
}

// isPointer tells a JSON Pointer from a literal.
func isPointer(s string) bool { return strings.HasPrefix(s, "/") }
