package store_test

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/action"
	"countersign/store"
)

// pgbenchScript is the statement of one proposal with its values written in;
// what must be new each time is made from the client and a counter.
func (e *bench) pgbenchScript(b *testing.B) string {
	b.Helper()
	payload, err := action.Canonical([]byte(benchPayload(1)))
	if err != nil {
		b.Fatal(err)
	}
	const id, marker = "act_00000000000000000000000000", "00000000000000000000000000"
	cmd := action.Propose{Op: "propose:reference:" + marker, By: e.Agent.By(), ID: id, Tool: "bench.change_order", Actor: action.Actor{ID: "user-1", Name: "Somebody"},
		RequestID: "req_" + marker, Key: "exk_" + marker, Ref: "cnf_" + marker, Digest: strings.Repeat("0", 38) + marker,
		Content: action.Content{ToolVersion: 1, Target: &action.Target{Type: "order", ID: "order-" + marker}, Payload: payload, Reason: "as asked", ExpiresIn: 15 * time.Minute,
			Terms: action.Terms{Write: true, ConfirmationTTL: 5 * time.Minute, Lease: time.Minute, SendWithin: 5 * time.Second, Proves: action.ProvesAccepted, Block: action.BlockTarget},
			Needs: []action.Need{{Role: "support", Approvals: 1}}}}
	t, err := action.Decide(action.Snapshot{Now: time.Now().UTC()}, cmd)
	if err != nil {
		b.Fatal(err)
	}
	query, args := store.CreateSQL(t)
	for i, hash := range []string{t.Next.PayloadHash, t.Next.ProposalHash} {
		for j, arg := range args {
			if text, ok := arg.(string); ok {
				args[j] = strings.ReplaceAll(text, hash, hash[:len(hash)-len(marker)-i]+marker+strings.Repeat("f", i))
			}
		}
	}
	query = regexp.MustCompile(`\$(\d+)`).ReplaceAllStringFunc(query, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return literal(b, args[n-1])
	})
	query = strings.ReplaceAll(query, marker, `' || lpad(:i::text, 14, '0') || lpad(:client_id::text, 12, '0') || '`)
	path := filepath.Join(b.TempDir(), "propose.sql")
	if err := os.WriteFile(path, []byte("\\set i :i + 1\n"+strings.ReplaceAll(query, "\n", " ")+";\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return path
}

// literal writes an argument as SQL, with its type.
func literal(b *testing.B, arg any) string {
	b.Helper()
	if v, ok := arg.(driver.Valuer); ok {
		value, err := v.Value()
		if err != nil {
			b.Fatal(err)
		}
		return "(" + quoted(fmt.Sprint(value)) + ")::text[]"
	}
	switch v := arg.(type) {
	case nil:
		return "NULL"
	case []byte:
		return "('\\x" + hex.EncodeToString(v) + "')::bytea"
	case time.Time:
		return "(" + quoted(v.Format(time.RFC3339Nano)) + ")::timestamptz"
	case *time.Time:
		if v == nil {
			return "NULL::timestamptz"
		}
		return literal(b, *v)
	case *string:
		if v == nil {
			return "NULL::text"
		}
		return literal(b, *v)
	case bool, int, int64:
		return fmt.Sprint(v)
	}
	return "(" + quoted(fmt.Sprint(arg)) + ")::text"
}

// quoted writes text as SQL in which pgbench finds no variable of its own.
func quoted(text string) string {
	return "'" + strings.NewReplacer("'", "''", ":", "' || chr(58) || '").Replace(text) + "'"
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// pgbench runs the script for a round and returns its rate.
func (e *bench) pgbench(b *testing.B, script string) float64 {
	b.Helper()
	bin, err := exec.LookPath("pgbench")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); err != nil && len(found) > 0 {
		bin, err = found[len(found)-1], nil
	}
	if err != nil {
		b.Skipf("pgbench is not here: %v", err)
	}
	dsn, err := url.Parse(e.DSN)
	if err != nil {
		b.Fatal(err)
	}
	start := strconv.FormatInt(time.Now().UnixMilli(), 10)
	out, err := exec.Command(bin, "-n", "-M", "prepared", "-c", strconv.Itoa(benchClients), "-j", "2", "-T", strconv.Itoa(int(benchRound/time.Second)),
		"-D", "i="+start, "-f", script, dsn.String()).CombinedOutput()
	m := tps.FindSubmatch(out)
	if err != nil || m == nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	rate, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}
