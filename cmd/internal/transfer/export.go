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

	"github.com/reeltally/reeltally/store"
)

// Format is how rows are written.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
)

// Export is an organisation's histories on their way out: a row a point, and one without a date for a video that has none.
type Export struct {
	Org    *store.Org
	Format Format
	// Query says what is wanted; After and Limit are set here.
	Query store.ExportQuery
	// Progress is told now and then how many videos are written.
	Progress func(videos int64)
}

// Exported is what was written.
type Exported struct {
	Videos int64 `json:"videos"`
	Rows   int64 `json:"rows"`
}

// exportedAtOnce is how many videos are read at a time.
const exportedAtOnce = 200

// row is a row as it is written. The names are those that an import knows.
type row struct {
	Link         string  `json:"link"`
	Username     string  `json:"username"`
	Title        string  `json:"title"`
	UploadedAt   *string `json:"uploaded_at"`
	VideoLength  *string `json:"video_length"`
	Date         *string `json:"date"`
	Time         *string `json:"time"`
	Views        *int64  `json:"views"`
	Likes        *int64  `json:"likes"`
	Comments     *int64  `json:"comments"`
	Shares       *int64  `json:"shares"`
	Bookmarks    *int64  `json:"bookmarks"`
	Interpolated bool    `json:"interpolated"`
	Source       *string `json:"source"`
}

var header = []string{"link", "username", "title", "uploaded_at", "video_length", "date", "time", "views", "likes", "comments", "shares",
	"bookmarks", "interpolated", "source"}

func (r *row) cells() []string {
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
	return []string{r.Link, guarded(r.Username), guarded(r.Title), text(r.UploadedAt), text(r.VideoLength), text(r.Date), text(r.Time), number(r.Views),
		number(r.Likes), number(r.Comments), number(r.Shares), number(r.Bookmarks), strconv.FormatBool(r.Interpolated), text(r.Source)}
}

// rowsOf turns a history into rows.
func rowsOf(h *store.VideoHistory) []row {
	v := &h.Video
	about := row{Link: v.Link, Username: v.Username, Title: v.Title, VideoLength: v.VideoLength}
	if v.UploadedAt != nil {
		about.UploadedAt = new(v.UploadedAt.String())
	}
	if len(h.Points) == 0 {
		return []row{about}
	}
	out := make([]row, len(h.Points))
	for n := range h.Points {
		p, r := &h.Points[n], about
		r.Date, r.Views, r.Likes, r.Comments, r.Shares, r.Bookmarks = new(p.Day.String()), p.Views, p.Likes, p.Comments, p.Shares, p.Bookmarks
		r.Interpolated, r.Source = p.Quality == store.QualityInterpolated, p.Source
		if p.FetchedAt != nil {
			r.Time = new(p.FetchedAt.Time().Format(time.RFC3339Nano))
		}
		out[n] = r
	}
	return out
}

// rowWriter writes rows in a format.
type rowWriter struct {
	w    *bufio.Writer
	csv  *csv.Writer
	json *json.Encoder
}

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

func (r *rowWriter) header() error {
	if r.csv == nil {
		return nil
	}
	return r.csv.Write(header)
}

func (r *rowWriter) write(one *row) error {
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

// To writes everything to w.
func (e Export) To(ctx context.Context, w io.Writer) (Exported, error) {
	out := newRowWriter(w, e.Format)
	if err := out.header(); err != nil {
		return Exported{}, err
	}
	var done Exported
	err := e.walk(ctx, out, uuid.Nil, &done, func(uuid.UUID) error { return out.flush() })
	return done, errors.Join(err, out.flush())
}

// walk writes the videos after one, and says after each batch how far it is.
func (e Export) walk(ctx context.Context, out *rowWriter, after uuid.UUID, done *Exported, batch func(after uuid.UUID) error) error {
	q := e.Query
	q.After, q.Limit = after, exportedAtOnce
	for {
		histories, err := e.Org.Export(ctx, q)
		if err != nil {
			return err
		}
		for n := range histories {
			rows := rowsOf(&histories[n])
			for r := range rows {
				if err := out.write(&rows[r]); err != nil {
					return err
				}
			}
			done.Rows += int64(len(rows))
			done.Videos++
			q.After = histories[n].Video.ID
		}
		if err := batch(q.After); err != nil {
			return err
		}
		e.Progress(done.Videos)
		if len(histories) < q.Limit {
			return nil
		}
	}
}

// exportState is what an export remembers of a file that is not whole yet.
type exportState struct {
	Work   string // what is exported, and how
	Offset int64  // up to where the file is whole rows
	After  uuid.UUID
	Exported
}

// work tells one export from another.
func (e Export) work() string {
	q := e.Query
	return fmt.Sprintf("%s %s %s..%s interpolated=%t removed=%t", e.Org.ID(), e.Format, q.From, q.To, q.Interpolated, q.IncludeRemoved)
}

// ToFile writes everything into a file, which is there once it is whole: until then it is called path.part. With resume, one
// that was broken off goes on where it was; without, one that is there is refused.
func (e Export) ToFile(ctx context.Context, path string, resume bool, failed func(error)) (Exported, error) {
	part := path + ".part"
	state := &State{Path: path + ".part-state", Failed: failed}
	at := exportState{Work: e.work()}
	flags := os.O_RDWR | os.O_CREATE | os.O_EXCL
	if _, err := os.Stat(part); resume && err == nil {
		flags = os.O_RDWR
		var was exportState
		switch err := state.read(&was); {
		case err != nil:
			was = at // it was broken off before anything was whole
		case was.Work != at.Work:
			return Exported{}, fmt.Errorf("%s was begun as %q, which is not %q: delete it, or ask for the same", part, was.Work, at.Work)
		}
		at = was
	}
	f, err := os.OpenFile(part, flags, 0o600) //nolint:gosec // the operator names it
	if errors.Is(err, os.ErrExist) {
		return Exported{}, fmt.Errorf("%s is there, from an export that was broken off or still runs: go on with --resume, or delete it", part)
	}
	if err != nil {
		return Exported{}, err
	}
	if err = errors.Join(e.into(ctx, f, &at, state), f.Close()); err != nil {
		return at.Exported, err
	}
	if err := os.Rename(part, path); err != nil {
		return at.Exported, err
	}
	state.end()
	return at.Exported, nil
}

func (e Export) into(ctx context.Context, f *os.File, at *exportState, state *State) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < at.Offset {
		return fmt.Errorf("%s has %d bytes; %d were written: delete it and begin anew", f.Name(), info.Size(), at.Offset)
	}
	if err := f.Truncate(at.Offset); err != nil {
		return err
	}
	if _, err := f.Seek(at.Offset, io.SeekStart); err != nil {
		return err
	}
	out := newRowWriter(f, e.Format)
	if at.Offset == 0 {
		if err := out.header(); err != nil {
			return err
		}
	}
	return e.walk(ctx, out, at.After, &at.Exported, func(after uuid.UUID) error {
		if err := errors.Join(out.flush(), f.Sync()); err != nil {
			return err
		}
		at.After = after
		if at.Offset, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		state.save(at)
		return nil
	})
}
