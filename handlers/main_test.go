package handlers

import (
	"os"
	"testing"

	"countersign/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Run(m)) }
