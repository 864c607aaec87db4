package store

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"countersign/store/storetest"
)

// A column that is added later is compared too.
func TestFoldCheckComparesEveryColumn(t *testing.T) {
	db, err := Open(context.Background(), storetest.New(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var columns, compared []string
	err = db.pool.Select(&columns, `SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'actions'`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[projected]().NumField() {
		compared = append(compared, reflect.TypeFor[projected]().Field(i).Tag.Get("db"))
	}
	slices.Sort(columns)
	slices.Sort(compared)
	if !slices.Equal(columns, compared) {
		t.Errorf("the table has   %q\ncompared are    %q", columns, compared)
	}
}
