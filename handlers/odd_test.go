package handlers

import (
	"encoding/base64"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
)

// oddAddresses are a route's addresses with one odd text in each, wherever one
// can stand: no text of ours is one of them.
func oddAddresses(rt route) (all []string) {
	early := base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(math.MinInt64) + " " + action.NewID("act")))
	odd := []string{"%00", "a%FFb", "%ED%A0%80", early, "0000-01-01", strings.Repeat("9", 400)}
	for _, part := range regexp.MustCompile(`\{\w+\}|\*`).FindAllString(rt.pattern, -1) {
		for _, text := range odd {
			all = append(all, someAddress(route{pattern: strings.Replace(rt.pattern, part, text, 1)}))
		}
	}
	if rt.method != get || rt.holds == forever {
		return all
	}
	names := strings.Fields("after approver decided from item kind next q since tool zone") // what pages pass on or look up
	if rt.call != nil {
		names = nil
		for _, p := range rt.call.query {
			names = append(names, p.name)
		}
	}
	for _, name := range names {
		for _, text := range odd {
			all = append(all, someAddress(rt)+"?"+name+"="+text)
		}
	}
	return all
}

// Whatever stands in an address is passed over, or refused in a way that the
// OpenAPI document names; it never reaches the database as what that cannot take.
func TestOddAddresses(t *testing.T) {
	e := newEnv(t)
	b := e.as(e.Person("everything", people.RoleSupport, people.RoleOps, people.RoleAdmin))
	key := e.key(e.ClientWith("everything", e.Admin, people.ClientGrants{
		Roles: []string{people.RoleProposer, people.RoleExecutor, people.RoleReader, people.RoleAdmin}}), 0)
	for _, rt := range routes() {
		q := request{method: rt.method, header: pairs([]string{"Origin", e.server.URL, "Content-Type", "application/x-www-form-urlencoded"})}
		if rt.call != nil {
			q.key, q.header, q.body = key, pairs([]string{"Idempotency-Key", "odd", "If-Match", "1"}), map[string]any{}
		}
		for _, q.path = range oddAddresses(rt) {
			a := send1(t, b.client, e.server.URL, q)
			if a.status >= http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s", rt.method, q.path, a.status, a.text())
			}
			if rt.call == nil || a.status < http.StatusBadRequest {
				continue
			}
			code := into[api.Problem](a).Code
			if !slices.ContainsFunc(refusalsOf(rt), func(k kind) bool { return string(k.code) == code }) {
				t.Errorf("%s %s answers %s, which its document does not name", rt.method, q.path, code)
			}
		}
	}
}
