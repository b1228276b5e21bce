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

// videoGroup is the data of one video, merged from all rows of the file that describe this video.
type videoGroup struct {
	Platform link.Platform
	ID       string
	Handle   string `json:",omitempty"`
	Link     string
	Title    string `json:",omitempty"`
	account
	Uploaded *store.Date `json:",omitempty"`
	Length   *string     `json:",omitempty"`
	MadeUp   bool        `json:",omitempty"` // whether the counts of a row come from a demo database
	Stopped  bool        `json:",omitempty"` // whether a row says that the other tracker no longer tracks the video
	// Points has at most one history point for each day, oldest first. Lines has, for each point, the line number of its last row.
	Points []backfill.LoadPoint
	Lines  []int
}

// importVideo converts the group to a video that backfill.Import takes.
func (g *videoGroup) importVideo() backfill.ImportVideo {
	return backfill.ImportVideo{Link: link.Link{Platform: g.Platform, Kind: link.Video, ID: g.ID, Handle: g.Handle, Canonical: g.Link},
		Username: g.Username, AccountID: g.AccountID, Title: g.Title, UploadedAt: g.Uploaded, VideoLength: g.Length, Points: g.Points, MadeUp: g.MadeUp, Stopped: g.Stopped}
}

// sortChunkSize is the number of records that are sorted in memory. More records are sorted on disk.
const sortChunkSize = 20_000

// sortRecords sorts the records that it receives from the channel in, by video and time. It sorts many records on disk, in the folder dir. The
// caller must close the channel in after the last record, receive from the channel out until it is closed, and then receive the error from the
// channel errs.
func sortRecords(ctx context.Context, in <-chan record, dir string) (out <-chan record, errs <-chan error) {
	fromBytes := func(b []byte) (r record, err error) { return r, json.Unmarshal(b, &r) }
	toBytes := func(r record) ([]byte, error) { return json.Marshal(r) }
	sorter, out, errs := extsort.Generic(in, fromBytes, toBytes, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.ID, b.ID), cmp.Compare(a.At, b.At), cmp.Compare(a.Line, b.Line))
	}, &extsort.Config{ChunkSize: sortChunkSize, NumWorkers: 2, ChanBuffSize: 1, SortedChanBuffSize: 1000, TempFilesDir: dir})
	go sorter.Sort(ctx)
	return out, errs
}

// add adds a row to the group. The row's values replace the values of earlier rows, and its counts replace the counts of earlier rows of
// the same day. If an earlier row has the same time but different counts, add returns an error.
func (g *videoGroup) add(r record) error {
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
	if last.At == r.At && conflicting(last.Counts, r.Counts) {
		return fmt.Errorf("line %d has different counts for the same video and time", g.Lines[n-1])
	}
	last.At, last.Rounded, g.Lines[n-1] = r.At, last.Rounded || r.Rounded, r.Line
	for _, c := range []struct{ to, from **int64 }{{&last.Views, &r.Counts.Views}, {&last.Likes, &r.Counts.Likes},
		{&last.Comments, &r.Counts.Comments}, {&last.Shares, &r.Counts.Shares}, {&last.Bookmarks, &r.Counts.Bookmarks}} {
		if *c.from != nil {
			*c.to = *c.from
		}
	}
	return nil
}

// conflicting reports whether any count, such as the views, is known in both a and b but has different values.
func conflicting(a, b store.Counts) bool {
	for _, pair := range [][2]*int64{{a.Views, b.Views}, {a.Likes, b.Likes}, {a.Comments, b.Comments}, {a.Shares, b.Shares}, {a.Bookmarks, b.Bookmarks}} {
		if pair[0] != nil && pair[1] != nil && *pair[0] != *pair[1] {
			return true
		}
	}
	return false
}

// spool is a temporary file with the sorted video groups of an import. It can be read several times.
type spool struct {
	file   *os.File
	videos int64 // number of videos
}

// newSpool groups the sorted records from the channel in by video and writes the groups to a new spool in the folder dir. It calls onBadRow for
// each row whose counts differ from those of an earlier row of the same video and time.
func newSpool(in <-chan record, dir string, onBadRow func(line int, reason error) error) (_ *spool, err error) {
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
	for r := range in {
		if g == nil || g.Platform != r.Platform || g.ID != r.ID {
			if err := flush(); err != nil {
				return nil, err
			}
			g = &videoGroup{Platform: r.Platform, ID: r.ID, Handle: r.Handle, Link: r.Link}
		}
		if reason := g.add(r); reason != nil {
			if err := onBadRow(r.Line, reason); err != nil {
				return nil, err
			}
		}
	}
	return s, errors.Join(flush(), w.Flush())
}

// eachBatch reads the videos of the spool from the beginning. It calls do with one batch of videos after another. A batch has at most
// maxBatchVideos videos and about maxBatchPoints points, so that one transaction can write it. eachBatch ends at the first error.
func (s *spool) eachBatch(ctx context.Context, do func([]videoGroup) error) error {
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
			if err := errors.Join(ctx.Err(), do(batch)); err != nil {
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

// The limits of a batch of an import. Larger batches are more efficient, but smaller batches block other writers for less time.
const (
	maxBatchVideos = 200
	maxBatchPoints = 20_000
)

// close closes and deletes the temporary file.
func (s *spool) close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }
