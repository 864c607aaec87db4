package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"countersign/people"
	"countersign/store"
)

func openStore(t *testing.T, env environment) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), env["DATABASE_URL"], store.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// fails runs a command that has to fail and returns what it says.
func fails(t *testing.T, env environment, in string, args ...string) string {
	t.Helper()
	code, out, errs := console(t, env, in, args...)
	if code != exitFailed {
		t.Fatalf("console %s ended with %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return errs
}

func TestPeopleFromTheCommandLine(t *testing.T) {
	env := onDatabase(t)
	db := openStore(t, env)
	service := people.New(db)
	ctx := context.Background()

	out := works(t, env, "", "user", "add", "admin", "--role", "admin", "--name", "Ada Admin", "--public-url", "https://countersign.example/")
	link := regexp.MustCompile(`https://countersign\.example/login/(\S+)`).FindStringSubmatch(out)
	if link == nil {
		t.Fatalf("no sign-in link in %q", out)
	}
	if p, err := service.UseLink(ctx, link[1]); err != nil || p.Username != "admin" || p.Name != "Ada Admin" {
		t.Errorf("the link signs in %v, %v", p, err)
	}
	works(t, env, "a good long password\n", "user", "add", "mia", "--role", "support,finance", "--password-stdin", "--lang", "zh")
	if _, err := service.SignIn(ctx, "mia", "a good long password", "test"); err != nil {
		t.Errorf("signing in: %v", err)
	}
	works(t, env, "another long password\n", "user", "passwd", "mia")
	if _, err := service.SignIn(ctx, "mia", "another long password", "test"); err != nil {
		t.Errorf("signing in with the new password: %v", err)
	}
	works(t, env, "", "user", "roles", "mia", "--role", "ops", "--tool", "catalog.set_price")
	works(t, env, "", "user", "disable", "mia")
	list := works(t, env, "", "user", "list")
	if !regexp.MustCompile(`(?m)^mia +mia +ops +catalog\.set_price +password +disabled since`).MatchString(list) {
		t.Errorf("the list says\n%s", list)
	}
	works(t, env, "", "user", "enable", "mia")
	if out := works(t, env, "", "user", "link", "mia", "--life", "10m"); !strings.Contains(out, "within 10m0s: http://127.0.0.1:8080/login/") {
		t.Errorf("the link: %s", out)
	}

	for _, c := range []struct{ line, in, says string }{
		{"user add mia --role ops", "", "/username: somebody has this username already"},
		{"user add x! --role ops", "", "/username: use 2 to 64"},
		{"user add bob --role ops --password-stdin", "short\n", "/password: use at least 12"},
		{"user add bob --role ops --password-stdin", "", "standard input"},
		{"user disable nobody", "", "no such person"},
		{"user disable admin", "", "last"},
		{"user link mia --life 999h", "", "up to 7 days"},
	} {
		if errs := fails(t, env, c.in, strings.Fields(c.line)...); !strings.Contains(errs, c.says) {
			t.Errorf("console %s says %q", c.line, errs)
		}
	}
}

var keyText = regexp.MustCompile(`ck_\w+`)

func TestClientsFromTheCommandLine(t *testing.T) {
	env := onDatabase(t)
	db := openStore(t, env)
	service := people.New(db)
	ctx := context.Background()
	opens := func(key string) bool {
		_, _, err := service.Authenticate(ctx, key)
		return err == nil
	}
	if out := works(t, env, "", "user", "add", "admin", "--role", "admin"); !strings.Contains(out, "elsewhere than at http://127.0.0.1:8080, put its address there") {
		t.Errorf("a link to an address that was assumed: %s", out)
	}

	first := keyText.FindString(works(t, env, "", "client", "add", "shop", "--role", "proposer", "--owner", "admin", "--entry", "chat"))
	if !opens(first) {
		t.Fatalf("the key %q does not work", first)
	}
	second := keyText.FindString(works(t, env, "", "client", "rotate", "shop"))
	if !opens(second) || !opens(first) {
		t.Error("after rotating with grace both keys work")
	}
	list := works(t, env, "", "client", "list")
	if strings.Contains(list, second) || !regexp.MustCompile(`(?m)^shop +proposer +admin +chat +enabled +key_\w+ +\w{8} +`).MatchString(list) {
		t.Errorf("the list says\n%s", list)
	}
	for _, id := range regexp.MustCompile(`key_\w+`).FindAllString(list, -1) {
		works(t, env, "", "client", "revoke", "shop", id)
	}
	if opens(first) || opens(second) {
		t.Error("revoked keys still work")
	}
	third := keyText.FindString(works(t, env, "", "client", "rotate", "shop", "--grace", "0s"))
	works(t, env, "", "client", "disable", "shop")
	if opens(third) {
		t.Error("a disabled client's key works")
	}
	works(t, env, "", "client", "enable", "shop")
	if !opens(third) {
		t.Error("an enabled client's key does not work")
	}
	for line, says := range map[string]string{
		"client add shop --role proposer --owner admin": "/name: another client has this name",
		"client add two --role boss --owner admin":      "/roles: must be one of",
		"client add two --role proposer --owner nobody": "/owner: ",
		"client revoke shop key_nosuch":                 "no such key",
	} {
		if errs := fails(t, env, "", strings.Fields(line)...); !strings.Contains(errs, says) {
			t.Errorf("console %s says %q", line, errs)
		}
	}
	if code, _, errs := console(t, env, "", "client", "add", "two", "--role", "proposer"); code != exitUsage || !strings.Contains(errs, "--owner") {
		t.Errorf("a client without an owner: %d %q", code, errs)
	}
}

func TestRotatingTheSigningKey(t *testing.T) {
	env := onDatabase(t)
	db := openStore(t, env)
	if errs := fails(t, env, "", "keys", "rotate"); !strings.Contains(errs, "COUNTERSIGN_SECRET is not set") {
		t.Errorf("without a secret: %q", errs)
	}
	env["COUNTERSIGN_SECRET"] = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	works(t, env, "", "keys", "rotate")
	keys, err := db.SigningKeys(context.Background())
	if err != nil || len(keys) != 2 || !keys[1].ActiveFrom.After(keys[0].ActiveFrom) {
		t.Errorf("keys: %+v, %v", keys, err)
	}
	env["COUNTERSIGN_SECRET"] = "YW5vdGhlciBzZWNyZXQgb2YgMzIgYnl0ZXMgb3IgbW9yZQ=="
	if errs := fails(t, env, "", "keys", "rotate"); !strings.Contains(errs, "cannot be opened with this secret") {
		t.Errorf("with another secret: %q", errs)
	}
}
