package handlers

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/action"
	"countersign/triage"
	"countersign/web"
)

// maxImport bounds a provider's file: it comes back once more, as text, with the
// confirmation.
const maxImport = 256 << 10

// showImport asks for a provider's file about exactly the cases of a list.
func (s *server) showImport(w http.ResponseWriter, r *http.Request, c caller) error {
	items, err := frozen(r.URL.Query()["item"])
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, time.Now()), w, http.StatusOK, web.ImportView(s.frame(r, c, web.Triage), importPage(items)))
}

func importPage(items []triage.Seen) web.ImportPage {
	p := web.ImportPage{Op: action.NewSecret(10), Back: "/triage", Max: maxImport}
	for _, seen := range items {
		p.Items = append(p.Items, web.CaseItem{ID: seen.CaseID, Version: seen.Version, SnapshotHash: seen.SnapshotHash})
	}
	return p
}

// importFile shows what a provider's file would record or, confirmed, records it.
func (s *server) importFile(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, file, name, err := importForm(w, r)
	if err != nil {
		return err
	}
	items, err := frozen(fields["item"])
	if err != nil {
		return err
	}
	p := importPage(items)
	ctx := speaking(r, c, time.Now())
	again := func(err error) error {
		p.Refused = refusalOf(err)
		return s.show(ctx, w, kindOf(action.AsRefusal(err).Code).status, web.ImportView(s.formFrame(r, c, web.Triage, "/triage"), p))
	}
	read, err := triage.ReadProviderFile(file)
	if err != nil {
		return again(err)
	}
	if fields.Get("step") == "confirm" {
		note, err := noteOf(fields)
		if err == nil {
			var rows []triage.ImportRow
			if rows, err = s.Cases.Import(r.Context(), whoIs(c), read, items, note); err == nil {
				return s.show(ctx, w, http.StatusOK, web.BulkView(s.formFrame(r, c, web.Triage, "/triage"), s.imported(r, c, rows)))
			}
		}
		if !action.IsCode(err, action.InvalidArgument) {
			return err
		}
		p.Refused = refusalOf(err)
	}
	rows, err := s.Cases.Preview(r.Context(), whoIs(c), read, items)
	if err != nil {
		return err
	}
	p.Preview = &web.ImportPreview{FileName: web.OutsideName(name), FileHash: read.Hash, Content: base64.StdEncoding.EncodeToString(file),
		Note: web.Own(strings.ToValidUTF8(fields.Get("note"), ""))}
	for _, row := range rows {
		p.Preview.Rows = append(p.Preview.Rows, s.importRow(r, c, row))
	}
	return s.show(ctx, w, http.StatusOK, web.ImportView(s.formFrame(r, c, web.Triage, "/triage"), p))
}

// importForm reads the upload, or the file that a confirmation brings back.
func importForm(w http.ResponseWriter, r *http.Request) (fields url.Values, file []byte, name string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, 4*maxImport)
	if err := r.ParseMultipartForm(4 * maxImport); err != nil {
		return nil, nil, "", action.Refuse(action.TooLarge, "The file is too large, or the form cannot be read.").Because("file").From(err)
	}
	fields = r.PostForm
	if fields.Get("step") == "confirm" {
		file, err = base64.StdEncoding.DecodeString(fields.Get("content"))
		if err != nil {
			return fields, nil, "", action.Refuse(action.Malformed, "The file did not come back as it was. Upload it again.").From(err)
		}
		return fields, file, clean(fields.Get("file_name")), nil
	}
	upload, head, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) {
		return fields, nil, "", nil // an empty file, which is refused with words of its own
	}
	if err != nil {
		return fields, nil, "", action.Refuse(action.Malformed, "The form cannot be read.").From(err)
	}
	defer upload.Close()
	if file, err = io.ReadAll(io.LimitReader(upload, maxImport+1)); err != nil {
		return fields, nil, "", action.Refuse(action.Malformed, "The file did not arrive as a whole.").From(err)
	}
	if len(file) > maxImport {
		return fields, nil, "", action.Refuse(action.TooLarge, "The file is larger than 256 KiB. Send it in parts.").Because("file")
	}
	return fields, file, clean(head.Filename), nil
}

// importRow is what a file says of one case, or of one key that is no case.
func (s *server) importRow(r *http.Request, c caller, row triage.ImportRow) web.ImportRow {
	out := web.ImportRow{Match: web.ImportMatch(row.Match)}
	for _, l := range row.Lines {
		line := web.ImportLine{Number: l.Number, Says: web.Outside(l.Outcome), Ref: web.Outside(l.Reference)}
		if out.Key = web.Outside(l.Key); row.Action != nil {
			line.Step = web.Outside(l.Step())
		}
		if out.Measure == nil && l.Amount != "" {
			out.Measure = web.MeasureMoney(web.Money{Amount: l.Amount, Currency: l.Currency})
		}
		out.Lines = append(out.Lines, line)
	}
	if row.Action != nil {
		out.CaseID, out.Key = row.Seen.CaseID, web.Outside(row.Action.ExecutionKey)
		if row.Action.Unreadable != nil {
			out.Effect = unreadEffect(*row.Action)
		} else if tool, err := s.catalogue.Version(r.Context(), row.Action.Tool, row.Action.ToolVersion); err == nil {
			out.Effect = effectOf(tool.Contract, string(langOf(r, c)), row.Action.Payload)
		}
	}
	if row.Err != nil {
		out.Refused = refusalOf(row.Err)
	}
	return out
}

// imported says what became of the cases of the list.
func (s *server) imported(r *http.Request, c caller, rows []triage.ImportRow) web.BulkPage {
	p := web.BulkPage{Do: "import", Back: "/triage"}
	for _, row := range rows {
		if row.Action == nil || row.Match == triage.MatchAbsent || row.Match == triage.MatchIncomplete || row.Match == triage.MatchUnclear {
			continue // nothing was to be recorded
		}
		shown := s.importRow(r, c, row)
		result := web.BulkResult{CaseID: shown.CaseID, Effect: shown.Effect, Refused: shown.Refused}
		switch row.Match {
		case triage.MatchStale:
			result.Refused = refusalOf(action.Refuse(action.StaleRevision, "Something new is known since the list was shown.").Because("case"))
		case triage.MatchTwice, triage.MatchDiffers:
			result.Refused = refusalOf(action.Refuse(action.InvalidArgument, "The file does not say one thing about this key, or another amount.").Because("file-" + string(row.Match)))
		}
		result.Second = result.Refused == nil && row.Action.Case != nil && row.Action.Case.Pending != nil
		p.Results = append(p.Results, result)
	}
	return p
}
