package web

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// wordsOf returns the messages of a locale file by dotted key.
func wordsOf(t *testing.T, l Lang) map[string]string {
	t.Helper()
	var tree map[string]any
	if _, err := toml.DecodeFile(filepath.Join("locales", string(l)+".toml"), &tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for k, v := range m {
			switch v := v.(type) {
			case string:
				out[prefix+k] = v
			case map[string]any:
				walk(prefix+k+".", v)
			}
		}
	}
	walk("", tree)
	return out
}

// messageKeys joins the forms of one message.
func messageKeys(m map[string]string) []string {
	keys := map[string]bool{}
	for k := range m {
		keys[strings.TrimSuffix(strings.TrimSuffix(k, ".one"), ".other")] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func TestBothLanguagesHaveTheSameWords(t *testing.T) {
	en, zh := messageKeys(wordsOf(t, English)), messageKeys(wordsOf(t, Chinese))
	for _, k := range en {
		if !slices.Contains(zh, k) {
			t.Errorf("zh lacks %s", k)
		}
	}
	for _, k := range zh {
		if !slices.Contains(en, k) {
			t.Errorf("en lacks %s", k)
		}
	}
	d, err := words()
	if err != nil {
		t.Fatal(err)
	}
	if len(d.keys) != len(en) {
		t.Errorf("%d messages parsed, %d in the file", len(d.keys), len(en))
	}
}

func TestEveryMessageUsesTheSameValuesInBothLanguages(t *testing.T) {
	holes := regexp.MustCompile(`\{\{\.(\w+)\}\}`)
	use := func(l Lang) map[string][]string {
		out := map[string][]string{}
		for k, v := range wordsOf(t, l) {
			k = strings.TrimSuffix(strings.TrimSuffix(k, ".one"), ".other")
			for _, m := range holes.FindAllStringSubmatch(v, -1) {
				name := m[1]
				if name == "first" { // the numeral at the start of a sentence
					name = "count"
				}
				if !slices.Contains(out[k], name) {
					out[k] = append(out[k], name)
				}
			}
			slices.Sort(out[k])
		}
		return out
	}
	en, zh := use(English), use(Chinese)
	for k := range en {
		if !slices.Equal(en[k], zh[k]) {
			t.Errorf("%s: en uses %v, zh uses %v", k, en[k], zh[k])
		}
	}
}

// Every literal key in the sources has words, and every word is asked for
// somewhere, literally or by a prefix that is completed at run time.
func TestKeysInTheSourcesAndInTheFilesAgree(t *testing.T) {
	en := messageKeys(wordsOf(t, English))
	asked := map[string]bool{}
	prefixes := map[string]bool{}
	literal := regexp.MustCompile(`"([a-z_]+(?:\.[A-Za-z0-9_-]+)+)"`)
	prefix := regexp.MustCompile(`"([a-z_]+\.(?:[a-z_]+[._])?[a-z_]*)" ?\+`)
	files, err := filepath.Glob("*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, ".templ") && (!strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_templ.go") || strings.HasSuffix(f, "_test.go")) {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(src), -1) {
			asked[m[1]] = true
		}
		for _, m := range prefix.FindAllStringSubmatch(string(src), -1) {
			prefixes[m[1]] = true
		}
	}
	tables := map[string]bool{}
	for _, k := range en {
		tables[strings.SplitN(k, ".", 2)[0]] = true
	}
	for k := range asked {
		if tables[strings.SplitN(k, ".", 2)[0]] && !slices.Contains(en, k) && !strings.HasSuffix(k, "_") && k != "error.s" {
			t.Errorf("no words for %q", k)
		}
	}
	for _, k := range en {
		used := asked[k]
		for p := range prefixes {
			used = used || strings.HasPrefix(k, p)
		}
		if !used && !builtAtRunTime(k) {
			t.Errorf("nobody asks for %q", k)
		}
	}
}

// builtAtRunTime lists the tables whose keys are put together from codes.
func builtAtRunTime(key string) bool {
	for _, table := range []string{"text.cp.", "month.", "numeral.", "numeral_first.", "key_role_does.", "role_does.", "role.", "key_role.", "start.", "form_of."} {
		if strings.HasPrefix(key, table) {
			return true
		}
	}
	return false
}

// The codes are read as text, because this package imports no domain package.
func TestEveryRefusalHasWords(t *testing.T) {
	src, err := os.ReadFile("../action/refusal.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`Code\s+= "([a-z-]+)"`).FindAllStringSubmatch(string(src), -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	for _, c := range codes {
		if !known("refusal." + c[1] + ".plain") {
			t.Errorf("no words for the refusal %s", c[1])
		}
	}
}

// The words that the product promises, exactly.
func TestPromisedWords(t *testing.T) {
	for _, w := range []struct {
		key    string
		en, zh string
	}{
		{"decide.reject", "Reject, this will not run", "拒绝，不执行"},
		{"state.proposed.plain", "Waiting for approval, not submitted yet", "待审批，尚未提交"},
		{"state.confirmed.plain", "Approved, not run yet", "已批准，尚未执行"},
		{"state.accepted.plain", "Accepted by {{.system}}, completion not proven", "{{.system}}已受理，未证实完成"},
		{"state.applied.reported", "Done per {{.system}}, not read back", "{{.system}}报告完成（未回读）"},
		{"state.applied.settled", "Done, settled by {{.person}}", "已完成（{{.person}}认定）"},
		{"state.failed.plain", "Not done: refused by {{.system}}", "未办成：{{.system}}拒绝"},
		{"state.failed.settled", "Not done: settled by {{.person}}", "未办成：{{.person}}认定"},
		{"state.conflict.plain", "Not run, object changed since", "未执行：对象已变更"},
		{"state.result_unknown.plain", "Result unknown: may or may not have happened", "结果未知：可能已执行，也可能未执行"},
		{"state.expired.plain", "Expired, nobody decided", "已过期，无人审批"},
		{"state.expired.lapsed", "Approved, not run in time", "已批准，逾期未执行"},
		{"step.again_until", "Send again, same key ({{.system}} remembers it until {{.at}})", "用原单号、原参数重发（{{.system}}保留该单号至 {{.at}}）"},
		{"case.miss", "“Not found” does not prove it did not happen", "查不到不代表没有执行"},
		{"case.take", "Take", "接手"},
		{"step.settle", "Settle", "认定结果"},
		{"stale.heading", "Not recorded. The content changed after you opened it: {{.field}} {{.a}} → {{.b}}. Review the new version.", "未记录您的决定。您打开后内容已变更：{{.field}} {{.a}} → {{.b}}。请查看新版本。"},
	} {
		if got := wordsOf(t, English)[w.key]; got != w.en {
			t.Errorf("en %s = %q, want %q", w.key, got, w.en)
		}
		if got := wordsOf(t, Chinese)[w.key]; got != w.zh {
			t.Errorf("zh %s = %q, want %q", w.key, got, w.zh)
		}
	}
}

// Who reads Chinese gets the English detail of a refusal only where no words of
// theirs say what is wrong.
func TestTheEnglishDetailOfARefusal(t *testing.T) {
	said := NewRefusal("invalid-argument", "", "Say what became of it.", nil).At("/verdict", "must be happened")
	unsaid := NewRefusal("invalid-argument", "", "It does not fit.", nil).At("/nowhere", "must be somewhere")
	if !said.detailed(English) || said.detailed(Chinese) || !unsaid.detailed(Chinese) || NewRefusal("not-found", "case", "There is none.", nil).detailed(English) != !known("refusal.not-found.case") {
		t.Error("the detail is shown where it should not be, or the other way round")
	}
}
