package transfer

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
)

// Format is the file format of an export.
type Format string

// These constants are the supported formats of an export.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
)

// Export exports the histories of an organisation. The file has a row for each history point. A video without points has one row, which has
// no date.
type Export struct {
	Org    *store.Org
	Format Format
	// Query selects the videos and points. Export overwrites the fields After and Limit of Query.
	Query store.ExportQuery
	// Progress is called after each batch with the number of videos written so far.
	Progress func(videos int64)
}

// Exported says how many videos and rows an export has written.
type Exported struct {
	Videos int64 `json:"videos"`
	Rows   int64 `json:"rows"`
}

// exportBatchSize is the number of videos that one query of an export reads.
const exportBatchSize = 200

// Row is a row of an export, or of the histories that package migrate downloads. Import can read both.
type Row struct {
	Link        string  `json:"link"`
	Username    string  `json:"username"`
	Title       string  `json:"title"`
	UploadedAt  *string `json:"uploaded_at"`
	VideoLength *string `json:"video_length"`
	Date        *string `json:"date"`
	Time        *string `json:"time"`
	Counts
	Interpolated bool    `json:"interpolated"`
	Source       *string `json:"source"`
	Rounded      bool    `json:"rounded"`
	Removed      bool    `json:"removed"` // whether tracking was stopped
}

// Counts are the counts of a Row. They are store.Counts with the names that the counts have in files and in the API.
type Counts struct {
	Views     *int64 `json:"views"`
	Likes     *int64 `json:"likes"`
	Comments  *int64 `json:"comments"`
	Shares    *int64 `json:"shares"`
	Bookmarks *int64 `json:"bookmarks"`
}

// header has the column names in the first line of a CSV file.
var header = []string{"link", "username", "title", "uploaded_at", "video_length", "date", "time", "views", "likes", "comments", "shares",
	"bookmarks", "interpolated", "source", "rounded", "removed"}

// cells returns the row's values for a CSV file, in the order of the header.
func (r *Row) cells() []string {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	// Escape usernames and titles that a spreadsheet would run as formulas.
	return []string{r.Link, formula.Escape(r.Username), formula.Escape(r.Title), text(r.UploadedAt), text(r.VideoLength), text(r.Date), text(r.Time), number(r.Views),
		number(r.Likes), number(r.Comments), number(r.Shares), number(r.Bookmarks), strconv.FormatBool(r.Interpolated), text(r.Source),
		strconv.FormatBool(r.Rounded), strconv.FormatBool(r.Removed)}
}

// rowsOf returns the rows of an export for one video: one for each history point, or one without a date if the video has no points.
func rowsOf(h *store.VideoHistory) []Row {
	v := &h.Video
	video := Row{Link: v.Link, Username: v.Username, Title: v.Title, VideoLength: v.VideoLength, Removed: v.Removed}
	if v.UploadedAt != nil {
		video.UploadedAt = new(v.UploadedAt.String())
	}
	if len(h.Points) == 0 {
		return []Row{video}
	}
	out := make([]Row, len(h.Points))
	for n := range h.Points {
		p, r := &h.Points[n], video
		r.Date, r.Counts = new(p.Day.String()), Counts(p.Counts)
		r.Interpolated, r.Source, r.Rounded = p.Quality == store.QualityInterpolated, p.Source, p.Quality == store.QualityRounded
		if p.FetchedAt != nil {
			r.Time = new(p.FetchedAt.Time().Format(time.RFC3339Nano))
		}
		out[n] = r
	}
	return out
}

// rowWriter writes rows as CSV or JSON Lines.
type rowWriter struct {
	w    *bufio.Writer
	csv  *csv.Writer
	json *json.Encoder
}

// newRowWriter returns a writer of rows in the given format. It buffers the rows, so the caller must call flush at the end.
func newRowWriter(w io.Writer, f Format) *rowWriter {
	r := &rowWriter{w: bufio.NewWriterSize(w, 1<<16)}
	if f == CSV {
		r.csv = csv.NewWriter(r.w)
	} else {
		r.json = json.NewEncoder(r.w)
		r.json.SetEscapeHTML(false)
	}
	return r
}

// writeHeader writes the column names as the first line of a CSV file. For other formats it does nothing.
func (r *rowWriter) writeHeader() error {
	if r.csv == nil {
		return nil
	}
	return r.csv.Write(header)
}

func (r *rowWriter) writeRow(one *Row) error {
	if r.csv == nil {
		return r.json.Encode(one)
	}
	return r.csv.Write(one.cells())
}

func (r *rowWriter) flush() error {
	if r.csv != nil {
		r.csv.Flush()
		if err := r.csv.Error(); err != nil {
			return err
		}
	}
	return r.w.Flush()
}

// Write writes the whole export to w, and returns what it wrote, even if it fails.
func (e Export) Write(ctx context.Context, w io.Writer) (Exported, error) {
	out := newRowWriter(w, e.Format)
	if err := out.writeHeader(); err != nil {
		return Exported{}, err
	}
	var done Exported
	err := e.writeVideos(ctx, out, uuid.Nil, &done, func(uuid.UUID) error { return out.flush() })
	return done, errors.Join(err, out.flush())
}

// writeVideos writes the videos whose ids are greater than afterID, ordered by id. After each batch it calls batchDone
// with the last written id.
func (e Export) writeVideos(ctx context.Context, out *rowWriter, afterID uuid.UUID, totals *Exported, batchDone func(last uuid.UUID) error) error {
	q := e.Query
	q.After, q.Limit = afterID, exportBatchSize
	for {
		histories, err := e.Org.Export(ctx, q)
		if err != nil {
			return err
		}
		for n := range histories {
			rows := rowsOf(&histories[n])
			for r := range rows {
				if err := out.writeRow(&rows[r]); err != nil {
					return err
				}
			}
			totals.Rows += int64(len(rows))
			totals.Videos++
			q.After = histories[n].Video.ID
		}
		if err := batchDone(q.After); err != nil {
			return err
		}
		e.Progress(totals.Videos)
		if len(histories) < q.Limit {
			return nil
		}
	}
}

// exportState is the progress of an export to a file. This progress is saved after each batch, so that an interrupted
// export can continue.
type exportState struct {
	Work   string    // result of Export.description; two runs with the same description write the same export
	Offset int64     // number of bytes from the start of the file to the end of the last complete batch
	After  uuid.UUID // id of the last video in the last complete batch
	Exported
}

// description returns a text that identifies the export: its organisation, format, and selected videos and points.
func (e Export) description() string {
	q := e.Query
	return fmt.Sprintf("%s %s %s..%s interpolated=%t removed=%t", e.Org.ID(), e.Format, q.From, q.To, q.Interpolated, q.IncludeRemoved)
}

// WriteFile writes the export to a file. An incomplete file has the suffix ".part". If resume is true, WriteFile
// continues such a file. Otherwise, such a file is an error.
func (e Export) WriteFile(ctx context.Context, path string, resume bool, onStateError func(error)) (Exported, error) {
	part := path + ".part"
	stateFile := &stateFile{Path: path + ".part-state", OnError: onStateError}
	state := exportState{Work: e.description()}
	flags := os.O_RDWR | os.O_CREATE | os.O_EXCL
	if _, err := os.Stat(part); resume && err == nil {
		flags = os.O_RDWR
		var saved exportState
		switch err := stateFile.load(&saved); {
		case err != nil:
			saved = state // there is no saved progress, because the first batch was not complete: start from the beginning
		case saved.Work != state.Work:
			return Exported{}, fmt.Errorf("%s belongs to another export (%q; this export is %q): delete the file, or run the command of the other export again", part, saved.Work, state.Work)
		}
		state = saved
	}
	f, err := os.OpenFile(part, flags, 0o600) //nolint:gosec // the operator chooses the path
	if errors.Is(err, os.ErrExist) {
		return Exported{}, fmt.Errorf("%s exists: another export is writing it, or was interrupted. If no export is running, continue with --resume, or delete the file", part)
	}
	if err != nil {
		return Exported{}, err
	}
	if err = errors.Join(e.continueFile(ctx, f, &state, stateFile), f.Close()); err != nil {
		return state.Exported, err
	}
	if err := os.Rename(part, path); err != nil {
		return state.Exported, err
	}
	stateFile.remove()
	return state.Exported, nil
}

// continueFile removes an incomplete batch from the end of f and writes the videos that are still missing. It saves the progress after each
// batch.
func (e Export) continueFile(ctx context.Context, f *os.File, state *exportState, stateFile *stateFile) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < state.Offset {
		return fmt.Errorf("%s has only %d of the %d bytes that were written: delete the file and start the export again", f.Name(), info.Size(), state.Offset)
	}
	if err := f.Truncate(state.Offset); err != nil {
		return err
	}
	if _, err := f.Seek(state.Offset, io.SeekStart); err != nil {
		return err
	}
	out := newRowWriter(f, e.Format)
	if state.Offset == 0 {
		if err := out.writeHeader(); err != nil {
			return err
		}
	}
	return e.writeVideos(ctx, out, state.After, &state.Exported, func(last uuid.UUID) error {
		if err := errors.Join(out.flush(), f.Sync()); err != nil {
			return err
		}
		state.After = last
		if state.Offset, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		stateFile.save(state)
		return nil
	})
}
