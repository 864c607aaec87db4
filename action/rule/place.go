package rule

import (
	"encoding/json"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// place turns payload.a.b or payload["a"] into the JSON Pointer /a/b.
func place(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return "", e.AsIdent() == "payload"
	case ast.SelectKind:
		s := e.AsSelect()
		return below(s.Operand(), s.FieldName())
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return "", false
		}
		key, ok := call.Args()[1].AsLiteral().Value().(string)
		if !ok {
			return "", false
		}
		return below(call.Args()[0], key)
	}
	return "", false
}

func below(operand ast.Expr, key string) (string, bool) {
	parent, ok := place(operand)
	if !ok {
		return "", false
	}
	return parent + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key), true
}

// lookup follows a JSON Pointer into a decoded JSON value.
func lookup(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, ok := index(token, len(v))
			if !ok {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// Field returns the value at a JSON Pointer of a snapshot, as it stands there,
// and whether there is one.
func Field(snapshot json.RawMessage, pointer string) (json.RawMessage, bool) {
	object, err := decode(snapshot)
	if err != nil {
		return nil, false
	}
	value, ok := lookup(object, pointer)
	if !ok {
		return nil, false
	}
	raw, err := json.Marshal(value)
	return raw, err == nil
}

func index(token string, length int) (int, bool) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	i := 0
	for _, r := range token {
		if r < '0' || r > '9' || i >= length {
			return 0, false
		}
		i = i*10 + int(r-'0')
	}
	return i, i < length
}
