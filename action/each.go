package action

import (
	"context"
	"errors"
	"fmt"
)

// toldFailures is how many failures one round names; of the rest it gives a count.
const toldFailures = 20

// Each does something about everything in a queue: about each of what page
// returns after the last one seen, "" or zero at first, until that is nothing.
// What fails keeps nothing else waiting; all failures are told at the end.
func Each[T any](ctx context.Context, page func(after T) ([]T, error), do func(T) error) error {
	var after T
	var failed []error
	more := 0
	for ctx.Err() == nil {
		found, err := page(after)
		if err != nil || len(found) == 0 {
			failed = append(failed, err)
			break
		}
		for _, one := range found {
			switch err := do(one); {
			case err == nil:
			case len(failed) < toldFailures:
				failed = append(failed, err)
			default:
				more++
			}
		}
		after = found[len(found)-1]
	}
	if more > 0 {
		failed = append(failed, fmt.Errorf("and %d more", more))
	}
	return errors.Join(append(failed, ctx.Err())...)
}
