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

// progress shows how far a long task is: by a bar at a terminal, else by a line in the log now and then.
type progress struct {
	log    *slog.Logger
	task   string
	unit   string
	began  time.Time
	logged time.Time
	total  int64        // 0 while it is not known
	before int          // points of the organisations that are done
	points atomic.Int64 // all, 0 where the task counts none; the bar reads it when it likes
	bars   *mpb.Progress
	bar    *mpb.Bar
}

const logEvery = 10 * time.Second

func newProgress(w io.Writer, logger *slog.Logger, task, unit string, total int64) *progress {
	s := &progress{log: logger, task: task, unit: unit, began: time.Now(), logged: time.Now(), total: total}
	if boot.IsTerminal(w) {
		s.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(64))
		s.bar = s.bars.AddBar(total,
			mpb.PrependDecorators(decor.Name(task+" "), decor.CountersNoUnit("%d of %d "+unit)),
			mpb.AppendDecorators(decor.Any(func(st decor.Statistics) string {
				if s.points.Load() == 0 {
					return s.left(st.Current).String() + " left"
				}
				return fmt.Sprintf("%.0f points/s, %s left", s.rate(), s.left(st.Current))
			})))
	}
	return s
}

func (s *progress) rate() float64 {
	return float64(s.points.Load()) / max(time.Since(s.began).Seconds(), 0.001)
}

func (s *progress) left(done int64) time.Duration {
	if done == 0 || s.total == 0 {
		return 0
	}
	return (time.Duration(float64(time.Since(s.began)) * float64(s.total-done) / float64(done))).Round(time.Second)
}

// set tells how much is done in all, and how many points of the organisation that is being filled.
func (s *progress) set(ctx context.Context, done int64, points int) {
	s.points.Store(int64(s.before + points))
	switch {
	case s.bar != nil:
		s.bar.SetCurrent(done)
	case time.Since(s.logged) >= logEvery:
		s.logged = time.Now()
		s.log.InfoContext(ctx, "progress", "task", s.task, "done", done, "of", s.total, "unit", s.unit, "points_per_second", int(s.rate()), "left", s.left(done).String())
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
	s.log.InfoContext(ctx, "ended", "task", s.task, "points", s.points.Load(), "elapsed", time.Since(s.began).Round(time.Millisecond).String(), "points_per_second", int(s.rate()))
}
