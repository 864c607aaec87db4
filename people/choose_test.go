package people_test

import (
	"testing"
	"time"

	"countersign/action"
	"countersign/people"
)

func TestChoosePassword(t *testing.T) {
	b := newBench(t)
	mia := b.person("mia", "support")
	held := people.Session{ID: "ses_x", Person: mia, Method: people.ByLink, StartedAt: mia.CreatedAt}
	own := func() people.Command {
		cmd := b.cmd()
		cmd.By = mia.As("", people.ByLink)
		return cmd
	}
	const chosen = "a password of her own"

	byPassword := held
	byPassword.Method = people.ByPassword
	_, err := b.ChoosePassword(b.ctx, own(), byPassword, chosen)
	b.refused(err, action.Forbidden, "password")
	_, err = b.later(people.ChooseTime).ChoosePassword(b.ctx, own(), held, chosen)
	b.refused(err, action.Forbidden, "password")
	other := own()
	other.By = b.person("ken", "admin").As("", people.ByLink)
	_, err = b.ChoosePassword(b.ctx, other, held, chosen)
	b.refused(err, action.Forbidden, "self")
	_, err = b.ChoosePassword(b.ctx, own(), held, "short")
	b.refused(err, action.InvalidArgument, "password-short")
	if n := len(b.events(mia.Subject())); n != 1 {
		t.Fatalf("%d events after refusals, want 1", n)
	}

	cmd := own()
	after, err := b.later(people.ChooseTime-time.Minute).ChoosePassword(b.ctx, cmd, held, chosen)
	b.ok(err)
	if after.Epoch != mia.Epoch+1 {
		t.Errorf("epoch %d, want sessions to end", after.Epoch)
	}
	_, err = b.SignIn(b.ctx, "mia", chosen, "192.0.2.1:1")
	b.ok(err)
	again, err := b.ChoosePassword(b.ctx, cmd, held, chosen)
	b.ok(err)
	if again.Version != after.Version {
		t.Errorf("repeated: version %d, want %d", again.Version, after.Version)
	}
}
