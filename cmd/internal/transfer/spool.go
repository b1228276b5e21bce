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
	MadeUp   bool        `json:",omitempty"` // whether at least one row has made-up counts, which come from a database with made-up data
	Stopped  bool        `json:",omitempty"` // whether at least one row says that the other tracker has stopped tracking the video
	// Points has at most one history point for each day, oldest first. Lines has, for each point, the line number of its last row.
	Points []backfill.Point
	Lines  []int

	// latest says where each count of the last point comes from, in the order of the metrics. It is used only while rows are added.
	latest [store.MetricCount]countOrigin
}

// countOrigin says which row gave a count. The zero value is the origin of an unknown count.
type countOrigin struct {
	at      store.Instant
	line    int
	rounded bool
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

// addRow adds a row to the group. Known values, such as the title, replace earlier values. A count that differs from the same count in another row with
// the same time is an error.
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
	return g.addCounts(r)
}

// addCounts adds the counts of a row to the point of the row's day. A known count replaces the same count of an earlier row of this day. An unknown
// count replaces nothing. If an earlier row with the same time has another value for a known count, addCounts returns an error.
func (g *videoGroup) addCounts(r record) error {
	n := len(g.Points)
	if n == 0 || g.Points[n-1].At.Day() != r.At.Day() {
		g.Points, g.Lines, g.latest = append(g.Points, backfill.Point{}), append(g.Lines, 0), [store.MetricCount]countOrigin{}
		n++
	}
	last := &g.Points[n-1]
	stored, added := last.Fields(), r.Counts.All()
	for i, origin := range g.latest {
		// Several rows can have the same time, for example if each row has only one of the counts. But two rows must not have different values of one count.
		if *stored[i] != nil && added[i] != nil && origin.at == r.At && **stored[i] != *added[i] {
			return fmt.Errorf("line %d has different counts for the same video and time", origin.line)
		}
	}
	last.At, last.Rounded, g.Lines[n-1] = r.At, false, r.Line
	for i := range g.latest {
		origin := &g.latest[i]
		if added[i] != nil {
			// If two rows of the same time have the same count and only one of them is rounded, the count is exact.
			rounded := r.Rounded[i] && (*stored[i] == nil || origin.at != r.At || origin.rounded)
			*stored[i], *origin = added[i], countOrigin{r.At, r.Line, rounded}
		}
		last.Rounded = last.Rounded || origin.rounded
	}
	return nil
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
