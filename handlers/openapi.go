package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/action"
	"countersign/execution/api"

	"github.com/danielgtaylor/huma/v2"
)

// contractDocument stands for a contract in the table: JSON or YAML with a
// schema of its own.
type contractDocument struct{}

// document writes the OpenAPI 3.1 document of all routes that have a call.
func document(table []route, server string) ([]byte, error) {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[api.Duration](), reflect.TypeFor[string]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Countersign", Version: "1", Description: "Propose an action, have people approve exactly that, claim it once, execute it, and prove what happened. " +
			"Absent values are null. Times are RFC 3339 in UTC. Refusals are problem documents (RFC 9457) whose type ends in a code."},
		Servers: []*huma.Server{{URL: server}},
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"key": {Type: "http", Scheme: "bearer", Description: "An API key, ck_…"}}},
	}
	taken := map[string]bool{} // names of the types that requests are of
	for _, rt := range table {
		if rt.call == nil {
			continue
		}
		doc.AddOperation(operation(registry, rt))
		if rt.call.body != nil {
			markTaken(taken, reflect.TypeOf(rt.call.body))
		}
	}
	tidySchemas(registry, taken)
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	return text, nil
}

func operation(registry huma.Registry, rt route) *huma.Operation {
	op := &huma.Operation{Method: rt.method, Path: rt.pattern, OperationID: rt.name, Summary: rt.call.about,
		Responses: map[string]*huma.Response{}, Security: []map[string][]string{}}
	if roles := rt.who.keys; len(roles) > 0 {
		op.Security = []map[string][]string{{"key": {}}}
		op.Description = "For API keys with one of the roles " + strings.Join(roles, ", ") + "."
	}
	op.Parameters = parameters(rt)
	if rt.call.body != nil {
		op.RequestBody = requestBody(registry, rt.call.body)
	}
	op.Responses[strconv.Itoa(rt.call.status)] = success(registry, rt)
	for _, k := range refusalsOf(rt) {
		refused(registry, op, k)
	}
	return op
}

func parameters(rt route) []*huma.Param {
	text := func() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }
	var all []*huma.Param
	for _, name := range []string{"id", "ref", "name", "tool", "case", "run", "task"} {
		if strings.Contains(rt.pattern, "{"+name+"}") {
			all = append(all, &huma.Param{Name: name, In: "path", Required: true, Schema: text()})
		}
	}
	for _, p := range rt.call.query {
		schema := text()
		if p.many {
			schema = &huma.Schema{Type: huma.TypeArray, Items: text()}
		}
		all = append(all, &huma.Param{Name: p.name, In: "query", Description: p.about, Schema: schema})
	}
	for _, p := range rt.call.headers {
		all = append(all, &huma.Param{Name: p.name, In: "header", Description: p.about, Required: p.required, Schema: text()})
	}
	return all
}

func requestBody(registry huma.Registry, body any) *huma.RequestBody {
	switch body.(type) {
	case contractDocument:
		object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
		return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: object}, "application/yaml": {Schema: object}}}
	case api.Cancel:
		return &huma.RequestBody{Content: jsonOf(registry, body)}
	}
	return &huma.RequestBody{Required: true, Content: jsonOf(registry, body)}
}

func jsonOf(registry huma.Registry, value any) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(reflect.TypeOf(value), true, "")}}
}

func success(registry huma.Registry, rt route) *huma.Response {
	answer := &huma.Response{Description: http.StatusText(rt.call.status), Headers: map[string]*huma.Param{
		"X-Request-Id": {Description: "Names the request in the console's log.", Schema: &huma.Schema{Type: huma.TypeString}}}}
	if rt.call.media != "" {
		answer.Content = map[string]*huma.MediaType{rt.call.media: {Schema: &huma.Schema{Type: huma.TypeString}}}
		return answer
	}
	if rt.call.answer == nil {
		answer.Content = map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}
		return answer
	}
	answer.Content = jsonOf(registry, rt.call.answer)
	if _, ok := rt.call.answer.(api.Action); ok {
		answer.Headers["ETag"] = &huma.Param{Description: "The action's version in quotes, for If-Match.", Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return answer
}

// refusalsOf is every refusal that a route may give: its own, and those of the
// way to it.
func refusalsOf(rt route) []kind {
	codes := slices.Clone(rt.call.refuses)
	if len(rt.who.keys) > 0 {
		codes = append(codes, action.Unauthorized, action.Forbidden, action.RateLimited, action.OutcomeUnknown)
	}
	if slices.ContainsFunc([]string{"{id}", "{ref}", "{case}", "{run}", "{task}"}, func(part string) bool { return strings.Contains(rt.pattern, part) }) {
		codes = append(codes, action.NotFound)
	}
	codes = append(codes, action.Malformed, action.InvalidArgument, action.Internal)
	return slices.DeleteFunc(kinds(), func(k kind) bool { return !slices.Contains(codes, k.code) })
}

// refused adds a refusal to the response of its status.
func refused(registry huma.Registry, op *huma.Operation, k kind) {
	status := strconv.Itoa(k.status)
	answer := op.Responses[status]
	if answer == nil {
		answer = &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: registry.Schema(reflect.TypeFor[api.Problem](), true, "")}}}
		op.Responses[status] = answer
	}
	if answer.Description != "" {
		answer.Description += "; "
	}
	answer.Description += string(k.code) + ": " + k.title
}

// markTaken notes a type that requests are of, with those inside it.
func markTaken(taken map[string]bool, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || taken[t.Name()] {
		return
	}
	taken[t.Name()] = true
	for _, field := range reflect.VisibleFields(t) {
		markTaken(taken, field.Type)
	}
}

// tidySchemas corrects what the generator takes for granted: our arrays are
// never null, absent objects in answers are, answers may grow, and a text that
// may be null in a request may be left out.
func tidySchemas(registry huma.Registry, taken map[string]bool) {
	for name, schema := range registry.Map() {
		t := registry.TypeFromRef("#/components/schemas/" + name)
		if !taken[name] {
			schema.AdditionalProperties = nil
		}
		for _, field := range reflect.VisibleFields(t) {
			tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := schema.Properties[tag]
			pointer := field.Type.Kind() == reflect.Pointer
			if taken[name] && pointer && property != nil && property.Ref == "" {
				schema.Required = slices.DeleteFunc(schema.Required, func(required string) bool { return required == tag })
			}
			switch {
			case property == nil:
			case field.Type == reflect.TypeFor[*api.Duration]():
				schema.Properties[tag] = &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}},
					Description: "A duration such as 15m, or whole seconds."}
			case taken[name] && tag == "payload":
				schema.Properties[tag] = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
			case property.Type == huma.TypeArray:
				property.Nullable = false
			case pointer && property.Ref != "" && options == "" && !taken[name]:
				schema.Properties[tag] = &huma.Schema{AnyOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}}}
			}
		}
	}
}
