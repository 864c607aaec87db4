package main

import (
	"os"
	"strings"
	"testing"
)

// Every row has a test, every test names a row, and the page says which.
func TestThePageIsTrue(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := namedTests(".")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, r := range rows(string(text)) {
		known[r.id] = true
		if len(showing(r, tests)) == 0 {
			t.Errorf("row %s (%s) has no test", r.id, r.system)
		}
	}
	for _, test := range tests {
		for _, id := range test.rows() {
			if !known[id] {
				t.Errorf("%s is named after row %s, which the page does not have", test, id)
			}
		}
	}
	if withTests(string(text), tests) != string(text) {
		t.Errorf("%s is out of date: go run ./tools/systems -write", page)
	}
}

func TestReportSaysWhatIsOpen(t *testing.T) {
	a, b := test{"store", "TestA1_One"}, test{"store", "TestA1_B2_Two"}
	table := []row{{"A1", "first"}, {"B2", "second"}, {"C3", "third"}}
	results, err := readResults(strings.NewReader(`{"Action":"pass","Package":"countersign/store","Test":"TestA1_One"}
{"Action":"output","Package":"countersign/store","Test":"TestA1_B2_Two","Output":"because\n"}
{"Action":"fail","Package":"countersign/store","Test":"TestA1_B2_Two/part"}
{"Action":"fail","Package":"countersign/store","Test":"TestA1_B2_Two"}
`), new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = report(&out, table, []test{a, b}, results)
	if err == nil || !strings.Contains(out.String(), "3 rows, 0 shown, 3 open") {
		t.Errorf("%v\n%s", err, out.String())
	}
	results[b] = "pass"
	out.Reset()
	err = report(&out, table[:2], []test{a, b}, results)
	if err != nil || !strings.Contains(out.String(), "2 rows, 2 shown, 0 open") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
