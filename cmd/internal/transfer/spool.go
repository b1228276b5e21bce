package transfer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lanrat/extsort"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// videoGroup has the data of one video, merged from all rows of the file that are about this video.
type videoGroup struct {
	Platform link.Platform
	ID       string
	Handle   string `json:",omitempty"`
	Link     string
	Title    string `json:",omitempty"`
	account
	Uploaded *store.Date `json:",omitempty"`
	Length   *string     `json:",omitempty"`
	MadeUp   bool        `json:",omitempty"` // whether at least one row has made-up counts, which come from a demo database
	Stopped  bool        `json:",omitempty"` // whether at least one row says that the other tracker has stopped tracking the video
	// Points has at most one history point for each day, oldest first. Lines has, for each point, the line number of its last row.
	Points []backfill.LoadPoint
	Lines  []int
}

func (g *videoGroup) newImportVideo() backfill.ImportVideo {
	return backfill.ImportVideo{Link: link.Link{Platform: g.Platform, Kind: link.Video, ID: g.ID, Handle: g.Handle, Canonical: g.Link},
		Username: g.Username, AccountID: g.AccountID, Title: g.Title, UploadedAt: g.Uploaded, VideoLength: g.Length, Points: g.Points, MadeUp: g.MadeUp, Stopped: g.Stopped}
}

// sortChunkSize is the number of records that are sorted in memory at a time. If there are more records, the sorted parts are written to
// disk and merged.
const sortChunkSize = 20_000

// sortRecords sorts records by video, time and line number. The caller closes the channel
// `records`, receives all sorted records, and then receives the error.
func sortRecords(ctx context.Context, records <-chan record, dir string) (sorted <-chan record, failure <-chan error) {
	fromBytes := func(b []byte) (r record, err error) { return r, json.Unmarshal(b, &r) }
	toBytes := func(r record) ([]byte, error) { return json.Marshal(r) }
	sorter, sorted, failure := extsort.Generic(records, fromBytes, toBytes, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.ID, b.ID), cmp.Compare(a.At, b.At), cmp.Compare(a.Line, b.Line))
	}, &extsort.Config{ChunkSize: sortChunkSize, NumWorkers: 2, ChanBuffSize: 1, SortedChanBuffSize: 1000, TempFilesDir: dir})
	go sorter.Sort(ctx)
	return sorted, failure
}

// addRow adds a row to the group. Known values, such as the title, replace earlier values.
// Different counts for the same time are an error.
func (g *videoGroup) addRow(r record) error {
	if r.Title != "" {
		g.Title = r.Title
	}
	if r.account != (account{}) {
		g.account = r.account
	}
	if r.Handle != "" {
		g.Handle, g.Link = r.Handle, r.Link
	}
	if r.Uploaded != nil {
		g.Uploaded = r.Uploaded
	}
	if r.Length != nil {
		g.Length = r.Length
	}
	g.MadeUp, g.Stopped = g.MadeUp || r.MadeUp, g.Stopped || r.Stopped
	if !r.Measured {
		return nil
	}
	n := len(g.Points)
	if n == 0 || g.Points[n-1].At.Day() != r.At.Day() {
		g.Points, g.Lines = append(g.Points, backfill.LoadPoint{At: r.At, Counts: r.Counts, Rounded: r.Rounded}), append(g.Lines, r.Line)
		return nil
	}
	last := &g.Points[n-1]
	if last.At == r.At && areCountsInConflict(last.Counts, r.Counts) {
		return fmt.Errorf("line %d has different counts for the same video and time", g.Lines[n-1])
	}
	// The known counts of the row replace those of an earlier row of the same day.
	last.At, last.Rounded, g.Lines[n-1] = r.At, last.Rounded || r.Rounded, r.Line
	for _, c := range []struct{ to, from **int64 }{{&last.Views, &r.Counts.Views}, {&last.Likes, &r.Counts.Likes},
		{&last.Comments, &r.Counts.Comments}, {&last.Shares, &r.Counts.Shares}, {&last.Bookmarks, &r.Counts.Bookmarks}} {
		if *c.from != nil {
			*c.to = *c.from
		}
	}
	return nil
}

// areCountsInConflict reports whether a count, such as the views, is known in both a and b and has different values.
func areCountsInConflict(a, b store.Counts) bool {
	for _, pair := range [][2]*int64{{a.Views, b.Views}, {a.Likes, b.Likes}, {a.Comments, b.Comments}, {a.Shares, b.Shares}, {a.Bookmarks, b.Bookmarks}} {
		if pair[0] != nil && pair[1] != nil && *pair[0] != *pair[1] {
			return true
		}
	}
	return false
}

// spool is a temporary file with the videos of an import and their history points, one JSON object (videoGroup) for each video. It can be
// read several times.
type spool struct {
	file   *os.File
	videos int64 // number of videos
}

// newSpool groups sorted records by video and writes them to a new spool in dir. It calls onBadRow for each
// record that it cannot add to its video.
func newSpool(records <-chan record, dir string, onBadRow func(line int, reason error) error) (_ *spool, err error) {
	f, err := os.CreateTemp(dir, "reeltally-import-*")
	if err != nil {
		return nil, err
	}
	s := &spool{file: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	w := bufio.NewWriterSize(f, 1<<16)
	encoder := json.NewEncoder(w)
	var g *videoGroup
	flush := func() error {
		if g == nil {
			return nil
		}
		s.videos++
		return encoder.Encode(g)
	}
	for r := range records {
		if g == nil || g.Platform != r.Platform || g.ID != r.ID {
			if err := flush(); err != nil {
				return nil, err
			}
			g = &videoGroup{Platform: r.Platform, ID: r.ID, Handle: r.Handle, Link: r.Link}
		}
		if reason := g.addRow(r); reason != nil {
			if err := onBadRow(r.Line, reason); err != nil {
				return nil, err
			}
		}
	}
	return s, errors.Join(flush(), w.Flush())
}

// eachBatch calls handleBatch for all videos of the spool, in batches that are small enough for one
// transaction. It ends at the first error.
func (s *spool) eachBatch(ctx context.Context, handleBatch func([]videoGroup) error) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := json.NewDecoder(bufio.NewReaderSize(s.file, 1<<16))
	var batch []videoGroup
	points := 0
	for {
		var g videoGroup
		err := d.Decode(&g)
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return err
		}
		if len(batch) > 0 && (atEnd || len(batch) == maxBatchVideos || points+len(g.Points) > maxBatchPoints) {
			if err := errors.Join(ctx.Err(), handleBatch(batch)); err != nil {
				return err
			}
			batch, points = batch[:0], 0
		}
		if atEnd {
			return nil
		}
		batch, points = append(batch, g), points+len(g.Points)
	}
}

// These are the limits of a batch, which is written in one transaction. Larger batches are more efficient, but smaller batches block other
// writers for less time.
const (
	maxBatchVideos = 200
	maxBatchPoints = 20_000
)

// close closes and deletes the temporary file.
func (s *spool) close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }
