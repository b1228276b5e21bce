// Package transfer moves histories in and out: it reads the files of other trackers into an organisation, and writes an
// organisation's histories into files.
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

// Import is one file on its way into an organisation.
type Import struct {
	Org     *store.Org
	In      io.Reader
	Columns Columns
	// Resolve says what a short link leads to.
	Resolve func(context.Context, link.Link) (link.Link, error)
	Now     time.Time
	// DryRun tells what would happen, and writes nothing into the database.
	DryRun bool
	// Bad is told of each row that cannot be imported, which is then left out; nil: such a row refuses the whole file.
	Bad func(BadRow) error
	// TempDir is where rows are sorted; "" is the system's place.
	TempDir string
	// Progress is told now and then how far a stage is: in bytes while reading, in videos after.
	Progress func(stage Stage, done, total int64)
}

// Stage is a part of the work.
type Stage string

// The stages. While Reading, the total is not known here.
const (
	Reading  Stage = "reading"
	Checking Stage = "checking"
	Writing  Stage = "writing"
)

// BadRow is a row that cannot be imported, and why.
type BadRow struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Summary is what became of a file.
type Summary struct {
	Rows         int64 `json:"rows"`
	Bad          int64 `json:"bad"`
	Interpolated int64 `json:"interpolated"` // rows that nobody measured, left out
	Uncounted    int64 `json:"uncounted"`    // rows of a day without any count: no points, they only name their videos
	Unnamed      int64 `json:"unnamed"`      // rows whose username can be none on its platform: they count without it

	Videos  int64 `json:"videos"`
	New     int64 `json:"new"`
	Stopped int64 `json:"stopped"`

	// The fates of the points; several rows of a day are one.
	Added  int64 `json:"added"`
	Folded int64 `json:"folded"`
	There  int64 `json:"there"`
	Kept   int64 `json:"kept"`
	TooOld int64 `json:"too_old"`
}

// RefusedError says why a file is not imported: nothing of it was written.
type RefusedError struct {
	Rows []BadRow // the first of them
	All  int64
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nothing is imported: %d rows cannot be (--skip-bad FILE leaves such rows out)", e.All)
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "\n  line %d: %s", r.Line, r.Reason)
	}
	if more := e.All - int64(len(e.Rows)); more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", more)
	}
	return b.String()
}

// shownBad is how many bad rows an error names.
const shownBad = 20

// importing is one run of an Import.
type importing struct {
	Import
	refused RefusedError
	sum     Summary
}

// Run imports the file: it is read and checked as a whole before anything of it is written. An import that is broken off,
// in whatever way, and run again comes to the same end.
func (i Import) Run(ctx context.Context) (Summary, error) {
	r := &importing{Import: i}
	s, err := r.read(ctx)
	if err != nil {
		return r.sum, err
	}
	defer func() { _ = s.close() }()
	if err := r.check(ctx, s); err != nil {
		return r.sum, err
	}
	if r.refused.All > 0 && r.Bad == nil {
		return r.sum, &r.refused
	}
	if r.DryRun {
		return r.sum, nil
	}
	err = r.write(ctx, s)
	return r.sum, err
}

func (r *importing) bad(line int, reason error) error {
	r.sum.Bad++
	row := BadRow{Line: line, Reason: reason.Error()}
	if r.Bad != nil {
		return r.Bad(row)
	}
	if r.refused.All++; len(r.refused.Rows) < shownBad {
		r.refused.Rows = append(r.refused.Rows, row)
	}
	return nil
}

// metered tells the progress of reading.
type metered struct {
	r        io.Reader
	done     int64
	progress func(Stage, int64, int64)
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.done += int64(n)
	m.progress(Reading, m.done, 0)
	return n, err
}

// read sorts the file's rows by video and time.
func (r *importing) read(ctx context.Context) (*spool, error) {
	file, err := newRowReader(&metered{r: r.In, progress: r.Progress}, r.Columns)
	if err != nil {
		return nil, err
	}
	asked := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	records := make(chan record, 1000)
	out, failed := sorted(ctx, records, r.TempDir)
	readErr := make(chan error, 1)
	go func() {
		defer close(records)
		err := r.rows(ctx, file, records)
		if err != nil {
			stop() // what was read so far is of no use
		}
		readErr <- err
	}()
	// Rows that disagree come up only once they are sorted, when all have been read: bad is never called twice at once.
	s, err := newSpool(out, r.TempDir, func(line int, reason error) error { return r.bad(line, reason) })
	stop()
	for range out { // so that the sorter ends
	}
	read := <-readErr
	sortErr := <-failed
	// Each of the three ends the others: what ended first is the reason.
	if read != nil && (!errors.Is(read, context.Canceled) || asked.Err() != nil) {
		err, sortErr = read, nil
	}
	if err = errors.Join(err, sortErr); err != nil {
		if s != nil {
			_ = s.close()
		}
		return nil, err
	}
	return s, nil
}

func (r *importing) rows(ctx context.Context, file rowReader, out chan<- record) error {
	rules := rows{now: store.InstantOf(r.Now), resolve: r.Resolve}
	for {
		line, v, err := file.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, ok := errors.AsType[wholeFileError](err); ok {
			return err
		}
		r.sum.Rows++
		var rec record
		if err == nil {
			rec, err = rules.record(ctx, line, &v)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrUnavailable): // no fault of the row
			return err
		case errors.Is(err, errInterpolated):
			r.sum.Interpolated++
		case err != nil:
			if err := r.bad(line, err); err != nil {
				return err
			}
		default:
			if rec.uncounted {
				r.sum.Uncounted++
			}
			if rec.unnamed {
				r.sum.Unnamed++
			}
			select {
			case out <- rec:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func videos(batch []group) []backfill.ImportVideo {
	out := make([]backfill.ImportVideo, len(batch))
	for n := range batch {
		out[n] = batch[n].video()
	}
	return out
}

// check asks what would become of all.
func (r *importing) check(ctx context.Context, s *spool) error {
	done := int64(0)
	sum := r.sum
	err := s.each(ctx, func(batch []group) error {
		imported, err := backfill.Import(ctx, r.Org, videos(batch), true)
		if err != nil {
			return err
		}
		for n, v := range imported {
			sum.count(v)
			for p, fate := range v.Results {
				if fate != backfill.PointBeforeUpload {
					continue
				}
				at := batch[n].Points[p].At.Day()
				if err := r.bad(batch[n].Lines[p], fmt.Errorf("%s was measured on %s, before it was uploaded", batch[n].Link, at)); err != nil {
					return err
				}
			}
		}
		done += int64(len(batch))
		r.Progress(Checking, done, s.groups)
		return nil
	})
	if r.DryRun {
		sum.Bad = r.sum.Bad
		r.sum = sum
	}
	return err
}

func (s *Summary) count(v backfill.ImportedVideo) {
	s.Videos++
	if v.New {
		s.New++
	}
	if v.Stopped {
		s.Stopped++
	}
	for _, fate := range v.Results {
		switch fate {
		case backfill.PointAdded:
			s.Added++
		case backfill.PointFolded:
			s.Folded++
		case backfill.PointThere:
			s.There++
		case backfill.PointKept:
			s.Kept++
		case backfill.PointTooOld:
			s.TooOld++
		case backfill.PointBeforeUpload: // a bad row
		}
	}
}

// write imports batch by batch. One that an earlier run wrote is found there, which is fast; nothing but the database is
// asked for that, since it may have been put back to an earlier state in between.
func (r *importing) write(ctx context.Context, s *spool) error {
	done := int64(0)
	return s.each(ctx, func(batch []group) error {
		imported, err := backfill.Import(ctx, r.Org, videos(batch), false)
		if err != nil {
			return err
		}
		for _, v := range imported {
			r.sum.count(v)
		}
		done += int64(len(batch))
		r.Progress(Writing, done, s.groups)
		return nil
	})
}
