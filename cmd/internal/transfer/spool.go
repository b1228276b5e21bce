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

// group is a video with all that a file says of it.
type group struct {
	Platform link.Platform
	ID       string
	Handle   string `json:",omitempty"`
	Link     string
	Title    string `json:",omitempty"`
	account
	Uploaded *store.Date `json:",omitempty"`
	Length   *string     `json:",omitempty"`
	// Points are one a day, the oldest first; Lines are the rows that they are from, the last of each day.
	Points []backfill.LoadPoint
	Lines  []int
}

func (g *group) video() backfill.ImportVideo {
	return backfill.ImportVideo{Link: link.Link{Platform: g.Platform, Kind: link.Video, ID: g.ID, Handle: g.Handle, Canonical: g.Link},
		Username: g.Username, AccountID: g.AccountID, Title: g.Title, UploadedAt: g.Uploaded, VideoLength: g.Length, Points: g.Points}
}

// sortedAtOnce is how many rows are in memory at a time; the others are on disk.
const sortedAtOnce = 20_000

// sorted gives all records that it gets into in by video and time, in memory of a bounded size. Close in when there are no
// more, and read out to its end; then ask failed.
func sorted(ctx context.Context, in <-chan record, dir string) (out <-chan record, failed <-chan error) {
	fromBytes := func(b []byte) (r record, err error) { return r, json.Unmarshal(b, &r) }
	toBytes := func(r record) ([]byte, error) { return json.Marshal(r) }
	sorter, out, failed := extsort.Generic(in, fromBytes, toBytes, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.ID, b.ID), cmp.Compare(a.At, b.At), cmp.Compare(a.Line, b.Line))
	}, &extsort.Config{ChunkSize: sortedAtOnce, NumWorkers: 2, ChanBuffSize: 1, SortedChanBuffSize: 1000, TempFilesDir: dir})
	go sorter.Sort(ctx)
	return out, failed
}

// add puts a row to its video. What a later row says of the video counts; so do the counts of a later one of the same day,
// as with fetches. Two rows that disagree about the same moment cannot both be right: the second is refused.
func (g *group) add(r record) error {
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
	if !r.Measured {
		return nil
	}
	n := len(g.Points)
	if n == 0 || g.Points[n-1].At.Day() != r.At.Day() {
		g.Points, g.Lines = append(g.Points, backfill.LoadPoint{At: r.At, Counts: r.Counts}), append(g.Lines, r.Line)
		return nil
	}
	last := &g.Points[n-1]
	if last.At == r.At && disagree(last.Counts, r.Counts) {
		return fmt.Errorf("line %d has other counts of the same video and time", g.Lines[n-1])
	}
	last.At, g.Lines[n-1] = r.At, r.Line
	for _, c := range []struct{ to, from **int64 }{{&last.Views, &r.Counts.Views}, {&last.Likes, &r.Counts.Likes},
		{&last.Comments, &r.Counts.Comments}, {&last.Shares, &r.Counts.Shares}, {&last.Bookmarks, &r.Counts.Bookmarks}} {
		if *c.from != nil {
			*c.to = *c.from
		}
	}
	return nil
}

func disagree(a, b store.Counts) bool {
	for _, pair := range [][2]*int64{{a.Views, b.Views}, {a.Likes, b.Likes}, {a.Comments, b.Comments}, {a.Shares, b.Shares}, {a.Bookmarks, b.Bookmarks}} {
		if pair[0] != nil && pair[1] != nil && *pair[0] != *pair[1] {
			return true
		}
	}
	return false
}

// spool keeps groups on disk, in the order of their keys, to be read as often as wanted.
type spool struct {
	file   *os.File
	groups int64
}

// newSpool makes the groups of sorted records. bad is told of rows that cannot be.
func newSpool(in <-chan record, dir string, bad func(line int, reason error) error) (_ *spool, err error) {
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
	var g *group
	flush := func() error {
		if g == nil {
			return nil
		}
		s.groups++
		return encoder.Encode(g)
	}
	for r := range in {
		if g == nil || g.Platform != r.Platform || g.ID != r.ID {
			if err := flush(); err != nil {
				return nil, err
			}
			g = &group{Platform: r.Platform, ID: r.ID, Handle: r.Handle, Link: r.Link}
		}
		if reason := g.add(r); reason != nil {
			if err := bad(r.Line, reason); err != nil {
				return nil, err
			}
		}
	}
	return s, errors.Join(flush(), w.Flush())
}

// each gives the groups in batches that fit into a transaction.
func (s *spool) each(ctx context.Context, do func([]group) error) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := json.NewDecoder(bufio.NewReaderSize(s.file, 1<<16))
	var batch []group
	points := 0
	for {
		var g group
		err := d.Decode(&g)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		if len(batch) > 0 && (ended || len(batch) == videosAtOnce || points+len(g.Points) > pointsAtOnce) {
			if err := errors.Join(ctx.Err(), do(batch)); err != nil {
				return err
			}
			batch, points = batch[:0], 0
		}
		if ended {
			return nil
		}
		batch, points = append(batch, g), points+len(g.Points)
	}
}

// A batch: large enough to cost little a point, small enough to let others write in between.
const (
	videosAtOnce = 200
	pointsAtOnce = 20_000
)

func (s *spool) close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }
