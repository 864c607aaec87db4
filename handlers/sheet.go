package handlers

import (
	"encoding/csv"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"countersign/web"
)

// How many rows of a file are read at a time, and how many requests one file of
// the history has.
const (
	filePage = 200
	fileMost = 20_000
)

// sheet answers rows as CSV for a spreadsheet: with a byte order mark, and with
// every cell as text, so that nothing is computed or rounded. It begins once there
// is a row: an error before that is answered as any other, and one after it cuts
// the connection, so that a part never passes for the whole.
func sheet(w http.ResponseWriter, name string, head []string, rows iter.Seq2[[]string, error]) error {
	var out *csv.Writer
	for row, err := range rows {
		if err == nil && out == nil {
			out, err = beginSheet(w, name, head)
		}
		if err == nil {
			err = out.Write(cells(row...))
		}
		if err != nil {
			return err
		}
	}
	if out == nil {
		var err error
		if out, err = beginSheet(w, name, head); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func beginSheet(w http.ResponseWriter, name string, head []string) (*csv.Writer, error) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if _, err := w.Write([]byte("\uFEFF")); err != nil {
		return nil, err
	}
	out := csv.NewWriter(w)
	return out, out.Write(cells(head...))
}

// cells makes what a spreadsheet would compute or round into text, and shows what
// could hide in it or turn it round as pages do.
func cells(values ...string) []string {
	for i, v := range values {
		v = web.Outside(v).Plain()
		values[i] = v
		long := len(v) > 11 && strings.Trim(v, "0123456789") == ""
		if long || strings.IndexAny(v, "=+-@\t\r\n＝＋－＠") == 0 {
			values[i] = "'" + v
		}
	}
	return values
}

// fileAt is the address of a file with all that a list is narrowed to, on
// whichever of its pages somebody is.
func fileAt(path string, list *url.URL) string {
	q := list.Query()
	q.Del("after")
	q.Del("done")
	return path + "?" + q.Encode()
}
