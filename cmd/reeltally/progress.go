package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// progress shows how far a seed is: by a bar at a terminal, else by a line in the log now and then.
type progress struct {
	log    *slog.Logger
	began  time.Time
	logged time.Time
	total  int          // videos
	before int          // points of the organisations that are done
	points atomic.Int64 // all; the bar reads it when it likes
	bars   *mpb.Progress
	bar    *mpb.Bar
}

const logEvery = 10 * time.Second

func newProgress(w io.Writer, logger *slog.Logger, total int) *progress {
	s := &progress{log: logger, began: time.Now(), logged: time.Now(), total: total}
	if boot.Terminal(w) {
		s.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(64))
		s.bar = s.bars.AddBar(int64(total),
			mpb.PrependDecorators(decor.Name("videos "), decor.CountersNoUnit("%d of %d")),
			mpb.AppendDecorators(decor.Any(func(st decor.Statistics) string {
				return fmt.Sprintf("%.0f points/s, %s left", s.rate(), s.left(st.Current))
			})))
	}
	return s
}

func (s *progress) rate() float64 {
	return float64(s.points.Load()) / max(time.Since(s.began).Seconds(), 0.001)
}

func (s *progress) left(videos int64) time.Duration {
	if videos == 0 {
		return 0
	}
	return (time.Duration(float64(time.Since(s.began)) * float64(int64(s.total)-videos) / float64(videos))).Round(time.Second)
}

// set tells how many videos there are in all, and how many points of the organisation that is being filled.
func (s *progress) set(ctx context.Context, videos, points int) {
	s.points.Store(int64(s.before + points))
	switch {
	case s.bar != nil:
		s.bar.SetCurrent(int64(videos))
	case time.Since(s.logged) >= logEvery:
		s.logged = time.Now()
		s.log.InfoContext(ctx, "seeding", "videos", videos, "of", s.total, "points_per_second", int(s.rate()), "left", s.left(int64(videos)).String())
	}
}

// next goes on with the next organisation.
func (s *progress) next() { s.before = int(s.points.Load()) }

// end gives the terminal back and logs what it came to.
func (s *progress) end(ctx context.Context) {
	if s.bar != nil {
		s.bar.Abort(false)
		s.bars.Wait()
	}
	s.log.InfoContext(ctx, "seeded", "points", s.points.Load(), "elapsed", time.Since(s.began).Round(time.Millisecond).String(), "points_per_second", int(s.rate()))
}
