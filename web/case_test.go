package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestAPostedCaseComesBackAsItWas(t *testing.T) {
	for _, i := range []CaseItem{{"cas_1", 1, "sha256:ab"}, {"cas_2", 1 << 40, ""}} {
		if got, ok := ParseCaseItem(i.String()); !ok || got != i {
			t.Errorf("%s is read as %v, %v", i, got, ok)
		}
	}
	for _, bad := range []string{"", "cas_1", "cas_1:2", ":1:sha256:ab", "cas_1:x:sha256:ab", "cas_1:0:sha256:ab", "cas_1:-1:sha256:ab"} {
		if got, ok := ParseCaseItem(bad); ok {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestEveryReadingShowsItsDifferenceToTheOneBeforeOfItsTool(t *testing.T) {
	read := func(tool, body string) Reading { return Reading{Tool: tool, Body: json.RawMessage(body)} }
	got := NewSnapshots([]Reading{
		read("get", `{"a":1,"phone":"170"}`), read("other", `{"x":1}`), {Tool: "get", Failed: Outside("no")},
		read("get", `{"a":1.0,"phone":"171"}`), read("get", `{"b":null}`), {Tool: "get"},
	}, FieldSource{Mask: []string{"/phone"}})
	var changed []string
	for _, s := range got {
		labels := []string{}
		for _, f := range s.Diff.Fields {
			labels = append(labels, f.Label.Plain())
		}
		if s.First {
			labels = append(labels, "first")
		}
		changed = append(changed, strings.Join(labels, " "))
	}
	if want := "A Phone first|X first|||B A Phone|"; strings.Join(changed, "|") != want {
		t.Errorf("%q, want %q", strings.Join(changed, "|"), want)
	}
	for _, s := range got {
		if page := rendered(t, English, Fields(s.Diff)); strings.Contains(page, "170") || strings.Contains(page, "171") {
			t.Errorf("a hidden value shows: %s", page)
		}
	}
}

func TestTheProviderIsTold_TheWindowInItsOwnZoneToo(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 11, 30, 15, 59, 58, 0, time.UTC)
	s := SupportBlock{Key: "exk_1", Target: NewTarget("order", "10086"), Ref: Outside("op\u202e"), From: from, To: from.Add(10 * time.Second), Zone: shanghai}
	page := rendered(t, English, support(Outside("PayHub"), s))
	for _, want := range []string{"exk_1", "order 10086", "U+202E", "2026-11-30 15:59:58 – 16:00:08 UTC", "2026-11-30 23:59:58 – 2026-12-01 00:00:08 UTC+8", "Asia/Shanghai"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
}

// "Not found" never stands alone, in no language.
func TestAMissIsNeverSaidWithoutThatItProvesNothing(t *testing.T) {
	for l, want := range map[Lang]string{English: "not found, <b>not proof</b>", Chinese: "查不到，<b>不是证明</b>"} {
		page := rendered(t, l, Say(Asked{Possible: true, Times: 3, Found: FoundNotFound}.words()))
		if !strings.Contains(page, want) {
			t.Errorf("%s lacks %q", page, want)
		}
	}
}

func TestOnlyRolesThatUseThemSeeUnknownResults(t *testing.T) {
	for role, sees := range map[string]bool{"support": true, "ops": true, "auditor": true, "admin": true, "owner": false} {
		page := rendered(t, English, topBar(Frame{Person: &Person{Roles: []string{role}}, Unknown: Count{N: 3}}))
		if strings.Contains(page, `href="/triage"`) != sees || strings.Contains(page, "need a person") != sees {
			t.Errorf("%s: %s", role, page)
		}
	}
}
