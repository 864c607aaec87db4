package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExecutorCommand(t *testing.T) {
	env := onDatabase(t)
	env["COUNTERSIGN_SECRET"] = goodSecret()
	url, _, _ := served(t, env)
	works(t, env, "", "user", "add", "admin", "--role", "admin")
	key := keyText.FindString(works(t, env, "", "client", "add", "executor", "--role", "executor", "--owner", "admin"))
	config := filepath.Join(t.TempDir(), "executor.yaml")
	t.Setenv("SHOP_WRITE_TOKEN", "a-write-token-nobody-sees")
	text := "systems:\n  - tools: [shop.*]\n    base_url: https://shop.example/api\n    write_token: { env: SHOP_WRITE_TOKEN }\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var out, errs output
	ended := make(chan int, 1)
	run := func(key string) {
		given := environment{"COUNTERSIGN_URL": url, "COUNTERSIGN_KEY": key}
		ended <- run(ctx, []string{"executor", "--config", config}, given.get, strings.NewReader(""), &out, &errs)
	}
	go run(key)
	eventually(t, "the console to see the executor", func() bool {
		return !strings.Contains(works(t, env, "", "client", "list"), "never")
	})
	cancel()
	if code := <-ended; code != exitOK {
		t.Errorf("ended with %d\n%s", code, errs.String())
	}
	if printed := out.String() + errs.String(); strings.Contains(printed, key) || strings.Contains(printed, "nobody-sees") || !strings.Contains(out.String(), "shop.*") {
		t.Errorf("it printed\n%s", printed)
	}

	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	go run("ck_00000000_0000000000000000000000000000000000000000")
	if code := <-ended; code != exitFailed || ctx.Err() != nil {
		t.Errorf("with an unknown key: ended with %d\n%s", code, errs.String())
	}
}
