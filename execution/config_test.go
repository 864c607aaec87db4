package execution

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const goodConfig = `
console: https://console.example
key: { env: TEST_KEY }
name: shop
poll: 2s
systems:
  - tools: ["catalog.*"]
    base_url: http://shop.internal/catalog
    read_token: { env: TEST_READ }
    write_token: { file: %s }
    actor_header: X-Actor
  - tools: ["catalog.audit.*", "audit"]
    base_url: https://audit.internal
`

func TestConfig(t *testing.T) {
	t.Setenv("TEST_KEY", "csk_1")
	t.Setenv("TEST_READ", "reads")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("writes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parseConfig(fmt.Appendf(nil, goodConfig, file))
	if err != nil {
		t.Fatal(err)
	}
	c, err = c.complete()
	if err != nil {
		t.Fatal(err)
	}
	if c.Key.Reveal() != "csk_1" || c.Systems[0].ReadToken.Reveal() != "reads" || c.Systems[0].WriteToken.Reveal() != "writes" {
		t.Error("a secret was not read")
	}
	if c.Poll != 2*time.Second || c.Wait != defaultWait || c.Concurrency != defaultConcurrency || c.Name != "shop" {
		t.Errorf("%+v", c)
	}
	for tool, base := range map[string]string{"catalog.set_price": "http://shop.internal/catalog", "audit": "https://audit.internal",
		"catalog.audit.read": "https://audit.internal", "audit.x": "", "catalog": "", "refunds.refund_order": ""} {
		if s, ok := c.serving(tool); s.BaseURL != base || ok != (base != "") {
			t.Errorf("%s is served by %q", tool, s.BaseURL)
		}
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Setenv("TEST_KEY", "csk_1")
	const system = "systems: [{tools: [t], base_url: 'http://s'}]\n"
	for text, want := range map[string]string{
		system + "console: http://c\nkey: {env: TEST_KEY}\nsecrets: 1":                                                                                      "unknown field",
		"console: http://c\nkey: csk_plain\n" + system:                                                                                                      "a secret is {env: NAME} or {file: PATH}",
		"console: http://c\nkey: {env: TEST_NONE}\n" + system:                                                                                               "no variable TEST_NONE",
		"console: http://c\nkey: {file: /nowhere/at/all}\n" + system:                                                                                        "reading a secret",
		"console: http://c\n" + system:                                                                                                                      "key: is not set",
		"key: {env: TEST_KEY}\n" + system:                                                                                                                   "console: is not set",
		"console: ftp://c\nkey: {env: TEST_KEY}\n" + system:                                                                                                 "console: is not http",
		"console: http://u:p@c\nkey: {env: TEST_KEY}\n" + system:                                                                                            "credentials go into tokens",
		"console: http://c\nkey: {env: TEST_KEY}\nwait: 5m\n" + system:                                                                                      "wait: is between",
		"console: http://c\nkey: {env: TEST_KEY}\nconcurrency: -1\n" + system:                                                                               "concurrency: is between",
		"console: http://c\nkey: {env: TEST_KEY}\nsystems: [{base_url: 'http://s'}]":                                                                        "systems[0]: tools: name at least one",
		"console: http://c\nkey: {env: TEST_KEY}\nsystems: [{tools: ['a*b'], base_url: 'http://s'}]":                                                        `"a*b" is no name`,
		"console: http://c\nkey: {env: TEST_KEY}\nsystems: [{tools: [t], base_url: 'http://s?x'}]":                                                          "base_url: is not http",
		"console: http://c\nkey: {env: TEST_KEY}\n" + strings.Replace(system, "[t]", "[t, t]", 1):                                                           `"t" is given twice`,
		"console: http://c\nkey: {env: TEST_KEY}\n" + strings.Replace(system, "}", ", actor_header: authorization}", 1):                                     "actor_header: is a header of your own",
		"console: http://c\nkey: {env: TEST_KEY}\nsystems: [{tools: [t], base_url: 'http://s', read_token: {env: TEST_KEY}, write_token: {env: TEST_KEY}}]": "write_token: is the read token",
	} {
		c, err := parseConfig([]byte(text))
		if err == nil {
			_, err = c.complete()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "csk_1") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	c, err := parseConfig([]byte("console: http://c\nkey: {env: TEST_KEY}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, Options{}); err == nil {
		t.Error("an executor without systems")
	}
}

func TestSecretsStayHidden(t *testing.T) {
	c := Config{Key: NewSecret("hunter2"), Systems: []System{{WriteToken: NewSecret("hunter2")}}}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.Info("x", "config", c, "key", c.Key)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "key", c.Key)
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x", c, c, c, c.Key, c.Key, c.Key)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), fmt.Sprintf("%x", "hunter2")) {
		t.Error(out.String())
	}
}
