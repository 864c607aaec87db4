package people_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/action"
	"countersign/people"
)

func TestCreateClient(t *testing.T) {
	b := newBench(t)
	owner := b.person("root", "admin")
	cmd := b.by(owner)
	n := people.NewClient{Name: "Refund agent", Owner: "root", ClientGrants: people.ClientGrants{Roles: []string{"proposer"}, Entries: []string{"chat"}}}
	made, err := b.CreateClient(b.ctx, cmd, n)
	b.ok(err)
	again, err := b.CreateClient(b.ctx, cmd, n)
	b.ok(err)
	if again.ID != made.ID || made.Owner != owner.ID {
		t.Errorf("made %+v, repeated %+v", made, again)
	}
	_, err = b.CreateClient(b.ctx, b.cmd(), n)
	b.refused(err, action.InvalidArgument, "client-taken")
	n.Name, n.Owner = "Other", "nobody"
	_, err = b.CreateClient(b.ctx, b.cmd(), n)
	b.refused(err, action.InvalidArgument, "owner")
	n.Owner, n.Roles = "root", []string{"support"}
	_, err = b.CreateClient(b.ctx, b.cmd(), n)
	b.refused(err, action.InvalidArgument, "choice")
	n.Roles = nil
	_, err = b.CreateClient(b.ctx, b.cmd(), n)
	b.refused(err, action.InvalidArgument, "role-missing")
}

func TestAuthenticate(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	key, text := b.key(c)
	got, gotKey, err := b.Authenticate(b.ctx, text)
	b.ok(err)
	if got.ID != c.ID || !got.Has("proposer") || gotKey.ID != key.ID {
		t.Errorf("authenticated as %+v with %+v", got, gotKey)
	}
	if !strings.HasPrefix(text, "ck_"+key.Prefix+"_") || len(text) < len("ck_12345678_")+32 {
		t.Errorf("key text %q, prefix %q", text, key.Prefix)
	}
	last := text[len(text)-1]
	other := byte('0')
	if last == other {
		other = '1'
	}
	for _, wrong := range []string{"", "ck_", text[:len(text)-1], text + "A", text[:len(text)-1] + string(other),
		strings.ToLower(text), "ck_" + strings.Repeat("0", 8) + text[11:]} {
		_, _, err := b.Authenticate(b.ctx, wrong)
		b.refused(err, action.Unauthorized, "key")
	}
	var stored []byte
	b.ok(b.db.Pool().QueryRowContext(b.ctx, `SELECT hash FROM client_keys WHERE id = $1`, key.ID).Scan(&stored))
	if sum := sha256.Sum256([]byte(text)); !bytes.Equal(stored, sum[:]) {
		t.Error("what is stored is not the SHA-256 of the key")
	}
}

func TestRevokedKeyIsRefusedAtOnce(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	key, text := b.key(c)
	other, otherText := b.key(c)
	for _, k := range []string{text, otherText} {
		_, _, err := b.Authenticate(b.ctx, k)
		b.ok(err)
	}
	left, err := b.RevokeKey(b.ctx, b.cmd(), c.ID, key.ID)
	b.ok(err)
	if len(left.Keys) != 2 || left.Keys[0].ID != other.ID || left.Keys[1].Revoked == nil {
		t.Errorf("keys %+v", left.Keys)
	}
	_, _, err = b.Authenticate(b.ctx, text)
	b.refused(err, action.Unauthorized, "key-revoked")
	_, _, err = b.Authenticate(b.ctx, otherText)
	b.ok(err)

	_, err = b.DisableClient(b.ctx, b.cmd(), c.Name)
	b.ok(err)
	_, _, err = b.Authenticate(b.ctx, otherText)
	b.refused(err, action.Unauthorized, "client-disabled")
	_, err = b.EnableClient(b.ctx, b.cmd(), c.ID)
	b.ok(err)
	_, _, err = b.Authenticate(b.ctx, otherText)
	b.ok(err)
	_, err = b.RevokeKey(b.ctx, b.cmd(), c.ID, "key_unknown")
	b.refused(err, action.NotFound, "")
}

func TestTwoLiveKeys(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	first, firstText := b.key(c)
	_, secondText := b.key(c)
	_, _, err := b.CreateKey(b.ctx, b.cmd(), c.ID, 0)
	b.refused(err, action.WrongState, "two-keys")
	_, _, err = b.RotateKey(b.ctx, b.cmd(), c.ID, first.ID, 0, time.Hour)
	b.refused(err, action.WrongState, "two-keys")

	_, thirdText, err := b.RotateKey(b.ctx, b.cmd(), c.ID, first.ID, 0, 0)
	b.ok(err)
	_, _, err = b.Authenticate(b.ctx, firstText)
	b.refused(err, action.Unauthorized, "key-revoked")
	for _, text := range []string{secondText, thirdText} {
		_, _, err := b.Authenticate(b.ctx, text)
		b.ok(err)
	}
}

func TestKeysAtOnce(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := b.CreateKey(b.ctx, b.cmd(), c.ID, 0); err != nil && action.AsRefusal(err).Reason != "two-keys" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	read, err := b.db.Client(b.ctx, c.ID)
	b.ok(err)
	if len(read.Keys) != 2 {
		t.Errorf("%d keys, want 2", len(read.Keys))
	}
}

func TestRotationOverlaps(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	old, oldText := b.key(c)
	_, newText, err := b.RotateKey(b.ctx, b.cmd(), c.ID, old.ID, 0, time.Hour)
	b.ok(err)
	for _, text := range []string{oldText, newText} {
		_, _, err := b.Authenticate(b.ctx, text)
		b.ok(err)
	}
	next := b.later(time.Hour + time.Second)
	_, _, err = next.Authenticate(b.ctx, oldText)
	b.refused(err, action.Unauthorized, "key-expired")
	_, _, err = next.Authenticate(b.ctx, newText)
	b.ok(err)
	_, _, err = next.RotateKey(b.ctx, b.cmd(), c.ID, old.ID, 0, 0)
	b.refused(err, action.WrongState, "key-dead")
}

func TestKeyExpires(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	_, text, err := b.CreateKey(b.ctx, b.cmd(), c.ID, time.Hour)
	b.ok(err)
	_, _, err = b.Authenticate(b.ctx, text)
	b.ok(err)
	_, _, err = b.later(time.Hour).Authenticate(b.ctx, text)
	b.refused(err, action.Unauthorized, "key-expired")
}

func TestKeyIsShownOnce(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	cmd := b.cmd()
	shown := make(chan string, 4)
	var all sync.WaitGroup
	for range cap(shown) {
		all.Go(func() {
			_, text, err := b.CreateKey(b.ctx, cmd, c.ID, 0)
			if err != nil {
				t.Error(err)
			}
			shown <- text
		})
	}
	all.Wait()
	close(shown)
	times := 0
	for text := range shown {
		if text == "" {
			continue
		}
		times++
		_, _, err := b.Authenticate(b.ctx, text)
		b.ok(err)
	}
	if times != 1 {
		t.Errorf("the key was shown %d times, want once", times)
	}
	if n := len(b.events(c.Subject())); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

func TestLastSeenIsWrittenOnceAMinute(t *testing.T) {
	b := newBench(t)
	c := b.client(b.person("root", "admin"), "proposer")
	_, text := b.key(c)
	seen := func() time.Time {
		t.Helper()
		read, err := b.db.Client(b.ctx, c.ID)
		b.ok(err)
		if read.Keys[0].LastSeen == nil {
			return time.Time{}
		}
		return *read.Keys[0].LastSeen
	}
	use := func(b *bench) {
		t.Helper()
		_, _, err := b.Authenticate(b.ctx, text)
		b.ok(err)
	}
	_, _, err := b.Authenticate(b.ctx, text[:len(text)-4]+"0000")
	b.refused(err, action.Unauthorized, "key")
	if !seen().IsZero() {
		t.Error("a wrong key counts as seen")
	}
	use(b)
	first := seen()
	use(b.later(30 * time.Second))
	if first.IsZero() || !seen().Equal(first) {
		t.Errorf("seen %v, then %v half a minute later", first, seen())
	}
	use(b.later(2 * time.Minute))
	if !seen().After(first) {
		t.Error("two minutes later nothing was written")
	}
}
