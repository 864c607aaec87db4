package execution

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/execution/api"
)

// A claim that was lost after the attempt was recorded is not used.
func TestNothingIsSentWithoutALease(t *testing.T) {
	base, requests := rawServer(t, func(c net.Conn, _ *http.Request) bool { respond(c, 200, "", `{"version":9}`); return false })
	for name, held := range map[string]struct {
		lost bool
		want action.Outcome
	}{"lost": {true, action.Failure}, "live": {false, action.Success}} {
		version := "8"
		r := &run{Executor: &Executor{Tools: &Tools{opt: Options{}.complete()}}, contract: parseContract(t, priceContract),
			work: api.Work{ObjectVersion: &version}, payload: []byte(pricePayload), system: System{BaseURL: base},
			lease: &lease{clock: systemClock{}, start: time.Now(), ttl: time.Minute, lost: held.lost}}
		wire, err := r.prepare(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := r.send(t.Context(), wire, time.Now(), time.Minute)
		if o := r.contract.Classify(got.answer(1)); o.Result != held.want || errors.Is(got.err, errLate) != held.lost {
			t.Errorf("%s: %+v of %v", name, o, got.err)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestFingerprintIsOfWhatIsSent(t *testing.T) {
	c := parseContract(t, priceContract)
	print := func(base, payload, key, version string) string {
		wire, err := c.Request(base, []byte(payload), key, version)
		if err != nil {
			t.Fatal(err)
		}
		req, err := wireRequest(wire, Secret{})
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint(wire, req.URL)
	}
	base := print("http://a", pricePayload, "exk_1", "8")
	if base != print("http://b", pricePayload, "exk_1", "8") {
		t.Error("the host is not what is done")
	}
	for name, other := range map[string]string{
		"payload": print("http://a", strings.Replace(pricePayload, "105", "106", 1), "exk_1", "8"),
		"target":  print("http://a", strings.Replace(pricePayload, "4411", "4412", 1), "exk_1", "8"),
		"key":     print("http://a", pricePayload, "exk_2", "8"),
		"version": print("http://a", pricePayload, "exk_1", "9"),
	} {
		if other == base {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}

func TestEvidenceIsWhatTheConsoleCanKeep(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 3*maxText)
	for _, c := range []struct{ body, want string }{
		{``, ``},
		{`{"a":1}`, `{"a":1}`},
		{`{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`},
		{"<p>\xff</p>", `"\u003cp\u003e` + "\uFFFD" + `\u003c/p\u003e"`},
	} {
		if got := string(evidence([]byte(c.body))); got != c.want {
			t.Errorf("evidence of %q is %s, want %s", c.body, got, c.want)
		}
	}
	if got := evidence(long); len(got) > maxText+100 || !bytes.Contains(got, []byte("6144 bytes in all")) {
		t.Errorf("a long text became %d bytes: %s", len(got), got[len(got)-60:])
	}
}
