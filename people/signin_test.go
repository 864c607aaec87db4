package people_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/action"
	"countersign/people"

	"github.com/lib/pq"
)

func TestSignIn(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	for _, username := range []string{"mia", " MIA "} {
		p, err := b.SignIn(b.ctx, username, goodPassword, "203.0.113.9:1")
		b.ok(err)
		if p.ID != mia.ID {
			t.Errorf("signed in as %s, want %s", p.ID, mia.ID)
		}
	}
	b.person("root", "admin")
	leo := b.person("leo", "support")
	_, err := b.DisablePerson(b.ctx, b.cmd(), leo.ID)
	b.ok(err)
	linkOnly, err := b.CreatePerson(b.ctx, b.cmd(), people.NewPerson{Username: "linkonly", Name: "L"})
	b.ok(err)
	if linkOnly.HasPassword {
		t.Error("somebody without a password has one")
	}
	for _, try := range [][2]string{{"mia", "wrong horse battery"}, {"mia", ""}, {"mia", strings.Repeat("x", 100_000)},
		{"nobody", goodPassword}, {"leo", goodPassword}, {"linkonly", goodPassword}, {"linkonly", ""}, {mia.ID, goodPassword}} {
		_, err := b.SignIn(b.ctx, try[0], try[1], "203.0.113.9:2")
		b.refused(err, action.Unauthorized, "sign-in")
	}
}

// TestPasswordNormalized: the same letters typed on another system are the same password.
func TestPasswordNormalized(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia")
	_, err := b.SetPassword(b.ctx, b.cmd(), mia.ID, "caf\u00e9 cr\u00e8me, please")
	b.ok(err)
	_, err = b.SignIn(b.ctx, "mia", "cafe\u0301 cre\u0300me, please", "a")
	b.ok(err)
}

// TestUnknownUserCostsTheSame: what is compared for an unknown user has the
// cost of a real hash.
func TestUnknownUserCostsTheSame(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	var hash string
	b.ok(b.db.Pool().QueryRowContext(b.ctx, `SELECT password_hash FROM persons`).Scan(&hash))
	real, nobody := strings.Split(hash, "$"), strings.Split(people.NobodysHash, "$")
	if fmt.Sprint(real[:4]) != fmt.Sprint(nobody[:4]) || len(real[4]) != len(nobody[4]) || len(real[5]) != len(nobody[5]) {
		t.Errorf("nobody's hash %s has another cost than %s", people.NobodysHash, hash)
	}
	if salt, err := base64.RawStdEncoding.Strict().DecodeString(nobody[4]); err != nil || len(salt) != 16 {
		t.Errorf("salt %x: %v", salt, err)
	}
}

func TestSignInIsThrottledPerName(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	const place = "203.0.113.9:4711"
	for range 10 {
		_, err := b.SignIn(b.ctx, "mia", "a wrong password", place)
		b.refused(err, action.Unauthorized, "sign-in")
	}
	_, err := b.SignIn(b.ctx, "MIA ", goodPassword, "203.0.113.9:12")
	b.refused(err, action.RateLimited, "sign-in-tries")
	wait, err := strconv.Atoi(action.AsRefusal(err).Args["retry_after"])
	if err != nil || wait < 1 || wait > 15*60 {
		t.Errorf("retry after %d seconds (%v), want at most 900", wait, err)
	}
	if _, err = b.SignIn(b.ctx, "mia", goodPassword, "203.0.113.10:1"); err != nil {
		t.Errorf("from another address: %v", err)
	}
	next := b.later(14 * time.Minute)
	_, err = next.SignIn(b.ctx, "mia", goodPassword, place)
	b.refused(err, action.RateLimited, "sign-in-tries")
	next = b.later(15*time.Minute + time.Second)
	_, err = next.SignIn(b.ctx, "mia", goodPassword, place)
	b.ok(err)
}

// TestSuccessClearsTheCount: people who mistype now and then are not shut out,
// and an office that signs in all day is not either.
func TestSuccessClearsTheCount(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	for range 4 {
		for range 3 {
			_, err := b.SignIn(b.ctx, "mia", "a wrong password", "a")
			b.refused(err, action.Unauthorized, "sign-in")
		}
		_, err := b.SignIn(b.ctx, "mia", goodPassword, "a")
		b.ok(err)
	}
}

func TestSignInIsThrottledPerPlace(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 25 {
				// Another host of the same network each time.
				place := fmt.Sprintf("[2001:db8::%x]:1", worker*25+i+1)
				_, err := b.SignIn(b.ctx, fmt.Sprintf("guess-%d-%d", worker, i), goodPassword, place)
				if !action.IsCode(err, action.Unauthorized) {
					t.Errorf("try %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	_, err := b.SignIn(b.ctx, "mia", goodPassword, "[2001:db8::ffff]:1")
	b.refused(err, action.RateLimited, "sign-in-tries")
	_, err = b.SignIn(b.ctx, "mia", goodPassword, "[2001:db8:0:1::1]:1")
	b.ok(err)
}

// TestTriesAtOnce: guesses that race are all counted.
func TestTriesAtOnce(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	var all sync.WaitGroup
	var compared atomic.Int64
	for range 40 {
		all.Go(func() {
			_, err := b.SignIn(b.ctx, "mia", "a wrong password", "a")
			if action.IsCode(err, action.Unauthorized) {
				compared.Add(1)
			} else if !action.IsCode(err, action.RateLimited) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if compared.Load() != 10 {
		t.Errorf("%d wrong passwords were compared, want 10", compared.Load())
	}
}

// TestSuccessAtOnce: one person who signs in many times at once waits for
// nobody crosswise.
func TestSuccessAtOnce(t *testing.T) {
	b := newBench(t)
	b.person("mia")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 4 {
				if _, err := b.SignIn(b.ctx, "mia", goodPassword, "a"); err != nil && !action.IsCode(err, action.RateLimited) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestChangePassword(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	cmd := b.by(mia)
	_, err := b.ChangePassword(b.ctx, cmd, mia, "not my old password", "another good one", "a")
	b.refused(err, action.Forbidden, "password")
	_, err = b.ChangePassword(b.ctx, cmd, mia, goodPassword, "short", "a")
	b.refused(err, action.InvalidArgument, "password-short")
	_, err = b.ChangePassword(b.ctx, b.cmd(), mia, goodPassword, "another good one", "a")
	b.refused(err, action.Forbidden, "self")
	for range 2 {
		p, err := b.ChangePassword(b.ctx, cmd, mia, goodPassword, "another good one", "a")
		b.ok(err)
		if p.Version != 2 || p.Epoch != mia.Epoch+1 {
			t.Errorf("person %+v", p)
		}
	}
	_, err = b.SignIn(b.ctx, "mia", goodPassword, "a")
	b.refused(err, action.Unauthorized, "sign-in")
	_, err = b.SignIn(b.ctx, "mia", "another good one", "a")
	b.ok(err)
}

func TestLinkWorksOnce(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	cmd := b.cmd()
	secret, err := b.NewLink(b.ctx, cmd, mia.ID, time.Hour)
	b.ok(err)
	if again, err := b.NewLink(b.ctx, cmd, mia.ID, time.Hour); err != nil || again != "" {
		t.Errorf("repeated: %q, %v; want no secret", again, err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 16 {
		all.Go(func() {
			p, err := b.UseLink(b.ctx, secret)
			if err != nil {
				b.refused(err, action.Unauthorized, "link")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if won++; p.ID != mia.ID {
				t.Errorf("the link is %s's, want %s's", p.ID, mia.ID)
			}
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("the link was used %d times, want once", won)
	}
	_, err = b.UseLink(b.ctx, secret)
	b.refused(err, action.Unauthorized, "link")
	_, err = b.UseLink(b.ctx, "")
	b.refused(err, action.Unauthorized, "link")
}

func TestLinkEnds(t *testing.T) {
	b := newBench(t)
	b.person("root", "admin")
	mia := b.person("mia", "support")
	link := func() string {
		t.Helper()
		secret, err := b.NewLink(b.ctx, b.cmd(), mia.ID, time.Hour)
		b.ok(err)
		return secret
	}
	secret := link()
	_, err := b.later(time.Hour).UseLink(b.ctx, secret)
	b.refused(err, action.Unauthorized, "link")
	_, err = b.NewLink(b.ctx, b.cmd(), mia.ID, 8*24*time.Hour)
	b.refused(err, action.InvalidArgument, "link-life")

	secret = link()
	_, err = b.DisablePerson(b.ctx, b.cmd(), mia.ID)
	b.ok(err)
	_, err = b.UseLink(b.ctx, secret)
	b.refused(err, action.Unauthorized, "link")
	_, err = b.NewLink(b.ctx, b.cmd(), mia.ID, time.Hour)
	b.refused(err, action.WrongState, "disabled")
	_, err = b.EnablePerson(b.ctx, b.cmd(), mia.ID)
	b.ok(err)
	_, err = b.UseLink(b.ctx, secret) // a link of before does not come back to life
	b.refused(err, action.Unauthorized, "link")

	secret = link()
	_, err = b.SetPassword(b.ctx, b.cmd(), mia.ID, "another good one")
	b.ok(err)
	_, err = b.UseLink(b.ctx, secret)
	b.refused(err, action.Unauthorized, "link")
}

// TestSecretsAreNotKept reads the whole database for what only people and
// programs may know.
func TestSecretsAreNotKept(t *testing.T) {
	b := newBench(t)
	admin := b.person("root", "admin")
	client := b.client(admin, "proposer")
	_, key := b.key(client)
	link, err := b.NewLink(b.ctx, b.cmd(), admin.ID, time.Hour)
	b.ok(err)
	unused, err := b.NewLink(b.ctx, b.cmd(), admin.ID, time.Hour)
	b.ok(err)
	_, err = b.UseLink(b.ctx, link)
	b.ok(err)
	browser := newBrowser(t, b, false)
	browser.signIn("root", goodPassword)
	secrets := map[string]string{"password": goodPassword, "API key": key, "key's secret": key[len(key)-40:], "link": link,
		"unused link": unused, "session": browser.cookie().Value, "mistyped username": "my password in the wrong field"}
	_, wrong := b.SignIn(b.ctx, secrets["mistyped username"], goodPassword, "a")
	_, tooShort := b.SetPassword(b.ctx, b.cmd(), admin.ID, "tiny secret")
	secrets["refused password"] = "tiny secret"

	dump := dumpTables(b)
	for _, err := range []error{wrong, tooShort} {
		dump.WriteString(err.Error())
		fmt.Fprintf(&dump, "%+v", action.AsRefusal(err))
	}
	if !bytes.Contains(dump.Bytes(), []byte(admin.ID)) {
		t.Fatal("the dump shows nothing")
	}
	for name, secret := range secrets {
		for _, form := range []string{secret, fmt.Sprintf("%x", secret)} {
			if bytes.Contains(dump.Bytes(), []byte(form)) {
				t.Errorf("%s is kept in the clear", name)
			}
		}
	}
}

func dumpTables(b *bench) (dump bytes.Buffer) {
	b.t.Helper()
	var tables []string
	rows, err := b.db.Pool().QueryContext(b.ctx, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	b.ok(err)
	defer rows.Close()
	for rows.Next() {
		var name string
		b.ok(rows.Scan(&name))
		tables = append(tables, name)
	}
	b.ok(rows.Err())
	for _, name := range tables {
		var text string
		b.ok(b.db.Pool().QueryRowContext(b.ctx, `SELECT coalesce(string_agg(t::text, E'\n'), '') FROM `+pq.QuoteIdentifier(name)+` t`).Scan(&text))
		dump.WriteString(text)
	}
	return dump
}

func TestTidyCredentials(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia")
	_, err := b.NewLink(b.ctx, b.cmd(), mia.ID, time.Hour)
	b.ok(err)
	browser := newBrowser(t, b, false)
	browser.signIn("mia", goodPassword)
	count := func() (n int) {
		t.Helper()
		b.ok(b.db.Pool().QueryRowContext(b.ctx, `SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM sign_in_links)
			+ (SELECT count(*) FROM sign_in_tries)`).Scan(&n))
		return n
	}
	before := count()
	b.ok(b.db.TidyCredentials(b.ctx))
	if count() != before {
		t.Error("what is alive was removed")
	}
	b.ok(b.later(13 * time.Hour).db.TidyCredentials(b.ctx))
	if n := count(); before == 0 || n != 0 {
		t.Errorf("%d rows are left of %d", n, before)
	}
}
