package main

import (
	"regexp"
	"strings"
	"testing"

	"countersign/execution/sandbox"
	"io/fs"
	"os"
	"path/filepath"
)

func TestCallbackSecretsFromTheCommandLine(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	dir := t.TempDir()
	for _, name := range []string{"refunds.refund_order.yaml", "refunds.get_refund.yaml", "refunds.get_operation.yaml"} {
		raw, err := fs.ReadFile(sandbox.Contracts(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	works(t, env, "", "tools", "apply", dir)

	out := works(t, env, "", "callbacks", "add", "refunds.refund_order")
	secret := regexp.MustCompile(`(?m)^whsec_\S+$`).FindString(out)
	if secret == "" || !strings.Contains(out, "/v1/callbacks/refunds.refund_order") {
		t.Errorf("add says\n%s", out)
	}
	if out := works(t, env, secret+"\n", "callbacks", "rotate", "refunds.refund_order", "--secret-stdin", "--grace", "0s"); strings.Contains(out, "whsec_") {
		t.Errorf("rotate repeats what it was told\n%s", out)
	}
	list := works(t, env, "", "callbacks", "list")
	if n := len(regexp.MustCompile(`(?m)^refunds\.refund_order +whs_\S+ .* +good$`).FindAllString(list, -1)); n != 1 || !strings.Contains(list, "ended ") || strings.Contains(list, "whsec_") {
		t.Errorf("list says\n%s", list)
	}
	if said := fails(t, env, "", "callbacks", "add", "refunds.get_refund"); !strings.Contains(said, "no callback part") {
		t.Errorf("a tool without callbacks: %s", said)
	}
	works(t, env, "", "callbacks", "parked")
}
