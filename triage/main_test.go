package triage_test

import (
	"context"
	"os"
	"testing"

	"countersign/store/stage"
	"countersign/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }

// set makes a console on a database of its own.
func set(t *testing.T) *stage.Stage {
	t.Helper()
	return stage.New(t, storetest.New(t))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// background is for calls whose end no test wants to cause.
var background = context.Background
