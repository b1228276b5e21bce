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

// Import imports the histories in a file, which is CSV or JSON, into an organisation.
type Import struct {
	Org     *store.Org
	In      io.Reader
	Columns Columns
	Numbers NumberFormat // AutoNumbers, DecimalPoint or DecimalComma
	Dates   DateFormat   // AutoDates, DayFirst or MonthFirst
	// Formats is a callback, or nil. Run calls it before it checks the rows, and passes the format of each column of numbers or dates.
	Formats func([]ColumnFormat)
	// Resolve follows a short link and returns the link to which it redirects.
	Resolve func(context.Context, link.Link) (link.Link, error)
	Now     time.Time
	// If DryRun is true, Run checks the file and returns the summary, but writes nothing to the database.
	DryRun bool
	// Bad is called for each invalid row, and Run skips the row. If Bad returns an error, Run stops with this error. If Bad is nil and there is an invalid
	// row, Run imports nothing and returns a *RefusedError.
	Bad func(BadRow) error
	// TempDir is the folder for temporary files; "" means the system's default.
	TempDir string
	// Progress is called often. Its numbers are bytes in the stages Guessing and Reading, and videos in the stages Checking and Writing.
	Progress func(stage Stage, done, total int64)
}

// Stage is the name of a step of an import. It is shown while the step runs.
type Stage string

// These constants are the stages of an import, in order. In the first two, Progress gets 0 as the
// total, because the file size is unknown.
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

// Summary says what an import has done and what it skipped.
type Summary struct {
	Rows             int64 `json:"rows"`
	Bad              int64 `json:"bad"`               // invalid rows, which were skipped
	Interpolated     int64 `json:"interpolated"`      // rows skipped because their counts are interpolated
	WithoutCounts    int64 `json:"without_counts"`    // rows with a date but no counts; the import takes only the video from such a row
	InvalidUsernames int64 `json:"invalid_usernames"` // rows imported without their username, because it is invalid on the platform

	Videos  int64 `json:"videos"`
	New     int64 `json:"new"`     // videos that were not in the organisation before
	Stopped int64 `json:"stopped"` // videos that are not tracked: the organisation has stopped tracking them, or they are new and the file marks them as stopped

	// Each of the next five fields is a number of history points, not of rows: several rows for the same video and day
	// are one point.
	Added     int64 `json:"added"`     // new points
	RolledUp  int64 `json:"rolled_up"` // old points that were not stored, because only the last point of their week is kept
	Existing  int64 `json:"existing"`  // points that existed already, with the same counts
	Conflicts int64 `json:"conflicts"` // points that were not stored, because a point of the same day or week exists with other counts
	TooOld    int64 `json:"too_old"`   // points that were not stored, because they are older than the retention
}

// RefusedError reports that nothing was imported because the file has invalid rows.
type RefusedError struct {
	Rows  []BadRow // the first invalid rows, at most maxShownBadRows
	Total int64    // number of invalid rows
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	count := "1 row is"
	if e.Total != 1 {
		count = fmt.Sprintf("%d rows are", e.Total)
	}
	fmt.Fprintf(&b, "nothing was imported: %s invalid (skip invalid rows with --skip-bad FILE)", count)
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

// Run detects the formats of the columns, checks all rows and then writes to the database. If Run
// was interrupted, run the same import again.
func (i Import) Run(ctx context.Context) (_ Summary, err error) {
	r := &importRun{Import: i}
	done, err := r.guessFormats(ctx)
	if err != nil {
		return r.summary, err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := r.readIntoSpool(ctx)
	if err != nil {
		return r.summary, err
	}
	defer func() { _ = s.close() }()
	if err := r.checkVideos(ctx, s); err != nil {
		return r.summary, err
	}
	if r.refused.Total > 0 && r.Bad == nil {
		return r.summary, &r.refused
	}
	if r.DryRun {
		return r.summary, nil
	}
	err = r.writeVideos(ctx, s)
	return r.summary, err
}

// addBadRow reports an invalid row to Bad. If Bad is nil, it adds the row to the RefusedError that Run returns at the end.
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

// progressReader calls progress with the number of bytes read so far.
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

// readIntoSpool reads the file into a spool, which is a temporary file with the rows grouped by video and sorted by time.
func (r *importRun) readIntoSpool(ctx context.Context) (*spool, error) {
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
			stop() // the import has failed, so cancel the sorting
		}
		readErrs <- err
	}()
	// newSpool receives the first sorted record only after readRows has returned. So readRows and newSpool never call
	// addBadRow at the same time.
	s, err := newSpool(sorted, r.TempDir, r.addBadRow)
	stop()
	for range sorted { // discard the remaining output, because the sorter ends only when all of it was received
	}
	// A step that fails cancels the other steps. Ignore the errors of the cancelled steps.
	err = errors.Join(err, exceptCanceled(<-readErrs), exceptCanceled(<-sortErrs))
	if callerCtx.Err() != nil {
		err = callerCtx.Err()
	}
	if err != nil {
		if s != nil {
			_ = s.close()
		}
		return nil, err
	}
	return s, nil
}

// exceptCanceled returns err, or nil if err reports that a context was cancelled.
func exceptCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// readRows checks all rows of the file and sends the valid ones to the channel records. It counts the skipped rows in the summary.
func (r *importRun) readRows(ctx context.Context, file rowReader, records chan<- record) error {
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
			rec, err = parser.parseRow(ctx, line, &v)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrUnavailable): // the database failed, so it is not known whether the row is valid: end the import
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
			case records <- rec:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func newImportVideos(batch []videoGroup) []backfill.ImportVideo {
	out := make([]backfill.ImportVideo, len(batch))
	for n := range batch {
		out[n] = batch[n].newImportVideo()
	}
	return out
}

// checkVideos checks all videos against the database, without writing. Points that are too early
// for the upload date are reported as invalid rows.
func (r *importRun) checkVideos(ctx context.Context, s *spool) error {
	done := int64(0)
	summary := r.summary
	err := s.eachBatch(ctx, func(batch []videoGroup) error {
		imported, err := backfill.Import(ctx, r.Org, newImportVideos(batch), true)
		if err != nil {
			return err
		}
		for n, v := range imported {
			summary.countVideo(v)
			for p, result := range v.Results {
				if result != backfill.PointBeforeUpload {
					continue
				}
				at := batch[n].Points[p].At.Day()
				if err := r.addBadRow(batch[n].Lines[p], fmt.Errorf("the counts of %s are from %s, before the video was uploaded on %s (%s)",
					batch[n].Link, at, v.Uploaded.Day, uploadOrigins[v.Uploaded.Origin])); err != nil {
					return err
				}
			}
		}
		done += int64(len(batch))
		r.Progress(Checking, done, s.videos)
		return nil
	})
	// Unless this is a dry run, writeVideos computes the summary.
	if r.DryRun {
		summary.Bad = r.summary.Bad
		r.summary = summary
	}
	return err
}

// uploadOrigins are the parts of an error message that say where an upload date comes from.
var uploadOrigins = map[backfill.UploadOrigin]string{
	backfill.UploadStored:   "ReelTally already has this date",
	backfill.UploadImported: "this date comes from another row of the file",
	backfill.UploadInID:     "this date comes from the id of the video",
}

// countVideo adds one imported video and its points to the summary.
func (s *Summary) countVideo(v backfill.ImportedVideo) {
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
		case backfill.PointRolledUp:
			s.RolledUp++
		case backfill.PointUnchanged:
			s.Existing++
		case backfill.PointConflicts:
			s.Conflicts++
		case backfill.PointTooOld:
			s.TooOld++
		case backfill.PointBeforeUpload: // nothing to count: checkVideos has already counted the row as invalid
		}
	}
}

// writeVideos imports all videos in batches. It keeps no list of finished batches, because such a
// list would be wrong after an older backup is restored.
func (r *importRun) writeVideos(ctx context.Context, s *spool) error {
	done := int64(0)
	return s.eachBatch(ctx, func(batch []videoGroup) error {
		imported, err := backfill.Import(ctx, r.Org, newImportVideos(batch), false)
		if err != nil {
			return err
		}
		for _, v := range imported {
			r.summary.countVideo(v)
		}
		done += int64(len(batch))
		r.Progress(Writing, done, s.videos)
		return nil
	})
}
