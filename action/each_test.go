package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A queue is gone through to its end, whatever fails on the way.
func TestEachStopsAtNothing(t *testing.T) {
	const all = 60
	page := func(after int) (found []int, err error) {
		for i := after + 1; i <= min(all, after+7); i++ {
			found = append(found, i)
		}
		return found, nil
	}
	var done []int
	odd := func(i int) error {
		if done = append(done, i); i%2 == 1 {
			return fmt.Errorf("number %d", i)
		}
		return nil
	}
	err := Each(context.Background(), page, odd)
	if len(done) != all || !slices.IsSorted(done) {
		t.Errorf("done %v", done)
	}
	if err == nil || !strings.Contains(err.Error(), "number 1\n") || !strings.HasSuffix(err.Error(), "\nand 10 more") {
		t.Errorf("%v", err)
	}
	if err := Each(context.Background(), page, func(int) error { return nil }); err != nil {
		t.Errorf("nothing failed: %v", err)
	}

	down := errors.New("down")
	err = Each(context.Background(), func(after int) ([]int, error) {
		if after > 0 {
			return nil, down
		}
		return page(after)
	}, odd)
	if !errors.Is(err, down) || !strings.Contains(err.Error(), "number 1\n") {
		t.Errorf("%v", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done = nil
	err = Each(ctx, page, func(i int) error { cancel(); return odd(i) })
	if !errors.Is(err, context.Canceled) || len(done) != 7 {
		t.Errorf("%d done after the end: %v", len(done), err)
	}
}
