package handlers

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution/api"
	"countersign/people"
	"countersign/store/stage"
)

func TestLists(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for range 5 {
		ids = append(ids, e.proposed(stage.SetPrice).ID)
	}
	slices.Reverse(ids) // newest first
	one, _ := e.claimed(stage.AskOther)
	list := func(query string) []string {
		found := []string{}
		for _, a := range into[api.List[api.Action]](e.get(people.RoleReader, "/v1/actions?"+query).want(200)).Items {
			found = append(found, a.ID)
		}
		return found
	}
	for query, want := range map[string][]string{
		"state=proposed":                  ids,
		"tool=" + stage.SetPrice:          ids,
		"state=executing":                 {one.ID},
		"claimed_by=" + e.Executor.ID:     {one.ID},
		"target=product:" + one.Target.ID: {one.ID},
		"target=" + one.Target.ID:         {one.ID},
		"target=order:" + one.Target.ID:   {},
		"actor=u-17&state=executing":      {one.ID},
		"actor=u-18":                      {},
		"task=nothing":                    {},
		"":                                append([]string{one.ID}, ids...),
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if mine := into[api.List[api.Action]](e.get(people.RoleExecutor, "/v1/actions?claimed_by=me").want(200)); len(mine.Items) != 1 {
		t.Errorf("claimed by me: %d", len(mine.Items))
	}
	seen, cursor := map[string]bool{}, ""
	for range 4 {
		page := into[api.List[api.Action]](e.get(people.RoleReader, "/v1/actions?limit=2&cursor="+cursor).want(200))
		for _, a := range page.Items {
			seen[a.ID] = true
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if len(seen) != 6 {
		t.Errorf("pages of two showed %v", slices.Sorted(maps.Keys(seen)))
	}
	for _, wrong := range []string{"state=done", "limit=0", "limit=201", "limit=ten", "cursor=x", "stat=proposed", "tool=a&tool=b", "actor=%00", "actor=" + strings.Repeat("x", 4097)} {
		e.get(people.RoleReader, "/v1/actions?"+wrong).refused(action.InvalidArgument)
	}
	e.get(people.RoleReader, "/v1/actions?tool=%zz").refused(action.Malformed)
}
