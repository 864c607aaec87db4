package people

import (
	"context"
	"time"

	"countersign/action"
)

// ChooseTime is how long after coming in with a one-time link somebody may
// choose a password without proving an old one, which they may not have.
const ChooseTime = 15 * time.Minute

// Fresh reports whether the session began with a one-time link less than
// ChooseTime ago.
func (s Session) Fresh(now time.Time) bool {
	return s.Method == ByLink && now.Before(s.StartedAt.Add(ChooseTime))
}

// ChoosePassword sets the password of somebody whose session is fresh, and ends
// all their sessions, this one too: sign in anew with the answer. Everybody
// else is refused as Forbidden, "password".
func (s *Service) ChoosePassword(ctx context.Context, cmd Command, held Session, password string) (Person, error) {
	if cmd.By.Kind != action.ByPerson || cmd.By.ID != held.Person.ID {
		return Person{}, refuse("self", "This changes your own password only.")
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return Person{}, err
	}
	if !held.Fresh(now) {
		return Person{}, refuse("password", "Prove your current password, or ask for a new sign-in link.")
	}
	return s.replacePassword(ctx, cmd, held.Person.ID, password)
}
