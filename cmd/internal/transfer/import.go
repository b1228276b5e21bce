package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// Import imports a file into an organisation.
type Import struct {
	Org     *store.Org
	In      io.Reader
	Columns Columns
	Numbers NumberFormat // AutoNumbers, DecimalPoint or DecimalComma
	Dates   DateFormat   // AutoDates, DayFirst or MonthFirst
	// Formats is called before the rows are checked, with the format of each column of numbers or dates that has values. It may be nil.
	Formats func([]ColumnFormat)
	// Resolve is a function that returns the link to which a short link redirects.
	Resolve func(context.Context, link.Link) (link.Link, error)
	Now     time.Time
	// DryRun is whether Run only checks the file and computes the summary, without writing to the database.
	DryRun bool
	// Bad is called for each invalid row, and Run skips the row. If Bad is nil and the file has an invalid row, Run returns a RefusedError.
	Bad func(BadRow) error
	// TempDir is the folder for temporary files; "" means the system's default.
	TempDir string
	// Progress is called often with the progress of a stage. done and total are in bytes in the stages Guessing and Reading, and in videos
	// in other stages.
	Progress func(stage Stage, done, total int64)
}

// Stage is a stage of an import.
type Stage string

// These constants are the stages of an import, in order. In the stages Guessing and Reading, Progress gets a total of 0, because the file's
// size is not known.
const (
	Guessing Stage = "guessing formats"
	Reading  Stage = "reading"
	Checking Stage = "checking"
	Writing  Stage = "writing"
)

// BadRow is an invalid row of a file and the reason why it is invalid.
type BadRow struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Summary is the result of an import.
type Summary struct {
	Rows             int64 `json:"rows"`
	Bad              int64 `json:"bad"`          // invalid rows
	Interpolated     int64 `json:"interpolated"` // rows skipped because their counts are interpolated
	WithoutCounts    int64 `json:"uncounted"`    // rows with a date but no counts, which add their video but no point
	InvalidUsernames int64 `json:"unnamed"`      // rows imported without their username, because it is invalid on the platform

	Videos  int64 `json:"videos"`
	New     int64 `json:"new"`     // videos that were not in the organisation before
	Stopped int64 `json:"stopped"` // videos that stay untracked, because their tracking was stopped in the organisation or in the other tracker

	// The next five fields count the points by the result of their import. Several rows of one video and day are one point.
	Added     int64 `json:"added"`   // new points
	Folded    int64 `json:"folded"`  // points left out, because a later point of the same week is kept
	Existing  int64 `json:"there"`   // points that exist already with the same counts
	Conflicts int64 `json:"kept"`    // points left out, because the existing point has other counts and is kept
	TooOld    int64 `json:"too_old"` // points older than the store keeps
}

// RefusedError reports that a file was not imported because it has invalid rows. The import changed nothing in the database.
type RefusedError struct {
	Rows  []BadRow // the first invalid rows
	Total int64    // number of invalid rows
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nothing was imported: %d rows are invalid (skip invalid rows with --skip-bad FILE)", e.Total)
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "\n  line %d: %s", r.Line, r.Reason)
	}
	if more := e.Total - int64(len(e.Rows)); more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", more)
	}
	return b.String()
}

// maxShownBadRows is the maximum number of invalid rows that a RefusedError lists.
const maxShownBadRows = 20

// importRun is the state of one run of an Import.
type importRun struct {
	Import
	formats formats
	refused RefusedError
	summary Summary
}

// Run imports the file. It first reads the whole file to detect the formats of the columns. Then it reads and checks the whole file. Only
// then does it write to the database. If Run is interrupted and then run again, the result is the same as without the interruption.
func (i Import) Run(ctx context.Context) (_ Summary, err error) {
	r := &importRun{Import: i}
	done, err := r.guessFormats(ctx)
	if err != nil {
		return r.summary, err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := r.read(ctx)
	if err != nil {
		return r.summary, err
	}
	defer func() { _ = s.close() }()
	if err := r.check(ctx, s); err != nil {
		return r.summary, err
	}
	if r.refused.Total > 0 && r.Bad == nil {
		return r.summary, &r.refused
	}
	if r.DryRun {
		return r.summary, nil
	}
	err = r.write(ctx, s)
	return r.summary, err
}

// addBadRow calls Bad for an invalid row. If Bad is nil, addBadRow adds the row to the RefusedError that Run returns at the end.
func (r *importRun) addBadRow(line int, reason error) error {
	r.summary.Bad++
	row := BadRow{Line: line, Reason: reason.Error()}
	if r.Bad != nil {
		return r.Bad(row)
	}
	if r.refused.Total++; len(r.refused.Rows) < maxShownBadRows {
		r.refused.Rows = append(r.refused.Rows, row)
	}
	return nil
}

// progressReader is a reader that reports how many bytes were read.
type progressReader struct {
	r        io.Reader
	stage    Stage
	done     int64
	progress func(Stage, int64, int64)
}

func (m *progressReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.done += int64(n)
	m.progress(m.stage, m.done, 0)
	return n, err
}

// read reads the file into a spool, a temporary file in which the rows are grouped by video and sorted by time.
func (r *importRun) read(ctx context.Context) (*spool, error) {
	file, err := newRowReader(&progressReader{r: r.In, stage: Reading, progress: r.Progress}, r.Columns)
	if err != nil {
		return nil, err
	}
	callerCtx := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	records := make(chan record, 1000)
	sorted, sortErrs := sortRecords(ctx, records, r.TempDir)
	readErrs := make(chan error, 1)
	go func() {
		defer close(records)
		err := r.readRows(ctx, file, records)
		if err != nil {
			stop() // cancel sorting, because the import fails and does not need the sorted rows
		}
		readErrs <- err
	}()
	// The spool calls addBadRow for conflicting rows. The sorter outputs records only after all rows are read, so addBadRow is never
	// called concurrently.
	s, err := newSpool(sorted, r.TempDir, r.addBadRow)
	stop()
	for range sorted { // read the remaining output of the sorter, because it ends only when its output is read completely
	}
	readErr := <-readErrs
	sortErr := <-sortErrs
	// If reading the file failed, stop cancelled sorting and spooling, so their errors say nothing more. Return only the error of reading.
	// If sorting or spooling failed, stop cancelled reading. Do not return the error of reading then.
	if readErr != nil && (!errors.Is(readErr, context.Canceled) || callerCtx.Err() != nil) {
		err, sortErr = readErr, nil
	}
	if err = errors.Join(err, sortErr); err != nil {
		if s != nil {
			_ = s.close()
		}
		return nil, err
	}
	return s, nil
}

// readRows sends the valid rows of the file to out.
func (r *importRun) readRows(ctx context.Context, file rowReader, out chan<- record) error {
	parser := rowParser{now: store.InstantOf(r.Now), resolve: r.Resolve, formats: r.formats}
	for {
		line, v, err := file.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, ok := errors.AsType[fileError](err); ok {
			return err
		}
		r.summary.Rows++
		var rec record
		if err == nil {
			rec, err = parser.parse(ctx, line, &v)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrUnavailable): // the import ends, because the database failed and the row may be valid
			return err
		case errors.Is(err, errInterpolated):
			r.summary.Interpolated++
		case err != nil:
			if err := r.addBadRow(line, err); err != nil {
				return err
			}
		default:
			if rec.withoutCounts {
				r.summary.WithoutCounts++
			}
			if rec.invalidUsername {
				r.summary.InvalidUsernames++
			}
			select {
			case out <- rec:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// importVideos converts a batch of video groups to the videos that backfill.Import takes.
func importVideos(batch []videoGroup) []backfill.ImportVideo {
	out := make([]backfill.ImportVideo, len(batch))
	for n := range batch {
		out[n] = batch[n].importVideo()
	}
	return out
}

// check does the import of all videos without writing to the database. If a point is older than the video's upload date in the database, check
// reports the point's row as invalid. In a dry run, check also computes the summary.
func (r *importRun) check(ctx context.Context, s *spool) error {
	done := int64(0)
	summary := r.summary
	err := s.eachBatch(ctx, func(batch []videoGroup) error {
		imported, err := backfill.Import(ctx, r.Org, importVideos(batch), true)
		if err != nil {
			return err
		}
		for n, v := range imported {
			summary.count(v)
			for p, result := range v.Results {
				if result != backfill.PointBeforeUpload {
					continue
				}
				at := batch[n].Points[p].At.Day()
				if err := r.addBadRow(batch[n].Lines[p], fmt.Errorf("the counts of %s are of %s, before the video was uploaded", batch[n].Link, at)); err != nil {
					return err
				}
			}
		}
		done += int64(len(batch))
		r.Progress(Checking, done, s.videos)
		return nil
	})
	if r.DryRun {
		summary.Bad = r.summary.Bad
		r.summary = summary
	}
	return err
}

// count adds the result of importing a video and its points to the counts of the summary.
func (s *Summary) count(v backfill.ImportedVideo) {
	s.Videos++
	if v.New {
		s.New++
	}
	if v.Stopped {
		s.Stopped++
	}
	for _, result := range v.Results {
		switch result {
		case backfill.PointAdded:
			s.Added++
		case backfill.PointFolded:
			s.Folded++
		case backfill.PointThere:
			s.Existing++
		case backfill.PointKept:
			s.Conflicts++
		case backfill.PointTooOld:
			s.TooOld++
		case backfill.PointBeforeUpload: // the row of this point was already counted as invalid by check
		}
	}
}

// write imports all batches into the database. After an interruption, it imports the finished batches again, which changes nothing and is
// fast. It does not record which batches are finished, because the database can be restored from a backup between two runs.
func (r *importRun) write(ctx context.Context, s *spool) error {
	done := int64(0)
	return s.eachBatch(ctx, func(batch []videoGroup) error {
		imported, err := backfill.Import(ctx, r.Org, importVideos(batch), false)
		if err != nil {
			return err
		}
		for _, v := range imported {
			r.summary.count(v)
		}
		done += int64(len(batch))
		r.Progress(Writing, done, s.videos)
		return nil
	})
}
