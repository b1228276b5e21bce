package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// progress shows the progress of a long task: as a bar on a terminal, and otherwise in the log.
type progress struct {
	log          *slog.Logger
	task         string
	unit         string // what is counted, such as "videos"
	start        time.Time
	lastLog      time.Time
	total        int64        // total number of units; 0 if unknown
	pointsBefore int          // number of history points in all finished organisations
	points       atomic.Int64 // number of history points so far; 0 if the task does not count them
	bars         *mpb.Progress
	bar          *mpb.Bar
}

// logInterval is the shortest time between two log lines about the progress of a task.
const logInterval = 10 * time.Second

// newProgress shows a bar on w if w is a terminal. Otherwise, the progress is logged. If total is
// 0, the total is unknown.
func newProgress(w io.Writer, logger *slog.Logger, task, unit string, total int64) *progress {
	p := &progress{log: logger, task: task, unit: unit, start: time.Now(), lastLog: time.Now(), total: total}
	if boot.IsTerminal(w) {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(64))
		p.bar = p.bars.AddBar(total,
			mpb.PrependDecorators(decor.Name(task+" "), decor.Any(func(st decor.Statistics) string {
				if st.Total <= 0 {
					return fmt.Sprintf("%d %s", st.Current, unit)
				}
				return fmt.Sprintf("%d of %d %s", st.Current, st.Total, unit)
			})),
			mpb.AppendDecorators(decor.Any(func(st decor.Statistics) string {
				var parts []string
				if p.points.Load() > 0 {
					parts = append(parts, fmt.Sprintf("%.0f points/s", p.pointRate()))
				}
				if left := p.timeLeft(st.Current); left > 0 {
					parts = append(parts, left.String()+" left")
				}
				return strings.Join(parts, ", ")
			})))
	}
	return p
}

// pointRate returns how many history points a second were written since the start.
func (p *progress) pointRate() float64 {
	return float64(p.points.Load()) / max(time.Since(p.start).Seconds(), 0.001)
}

// timeLeft estimates how long the rest of the task will take. It returns 0 if no unit is finished
// or the total is unknown.
func (p *progress) timeLeft(done int64) time.Duration {
	if done == 0 || p.total == 0 {
		return 0
	}
	return (time.Duration(float64(time.Since(p.start)) * float64(p.total-done) / float64(done))).Round(time.Second)
}

// showDone shows the number of finished units. `points` is the number of history points that were handled so
// far for the current organisation.
func (p *progress) showDone(ctx context.Context, done int64, points int) {
	p.points.Store(int64(p.pointsBefore + points))
	switch {
	case p.bar != nil:
		p.bar.SetCurrent(done)
	case time.Since(p.lastLog) >= logInterval:
		p.lastLog = time.Now()
		attrs := []any{"task", p.task, "done", done, "unit", p.unit}
		if p.total > 0 {
			attrs = append(attrs, "of", p.total, "left", p.timeLeft(done).String())
		}
		if p.points.Load() > 0 {
			attrs = append(attrs, "points_per_second", int(p.pointRate()))
		}
		p.log.InfoContext(ctx, "progress", attrs...)
	}
}

// showDoneAndTotal shows the number of finished units. If the total number of units was unknown so far, showDoneAndTotal also stores the total.
func (p *progress) showDoneAndTotal(ctx context.Context, done, total int64) {
	if p.total == 0 {
		if p.total = total; p.bar != nil {
			p.bar.SetTotal(total, false)
		}
	}
	p.showDone(ctx, done, 0)
}

// startNextOrganisation must be called when an organisation is finished. The caller of showDone must then count the points from 0 again.
func (p *progress) startNextOrganisation() { p.pointsBefore = int(p.points.Load()) }

// finish stops the bar, if there is one, and logs the elapsed time. If the task counts history points, finish also logs their number.
func (p *progress) finish(ctx context.Context) {
	if p.bar != nil {
		p.bar.Abort(false)
		p.bars.Wait()
	}
	attrs := []any{"task", p.task, "elapsed", time.Since(p.start).Round(time.Millisecond).String()}
	if points := p.points.Load(); points > 0 {
		attrs = append(attrs, "points", points, "points_per_second", int(p.pointRate()))
	}
	p.log.InfoContext(ctx, "task ended", attrs...)
}

// stageProgress shows the progress of a task with several stages, with a new bar for each stage.
type stageProgress struct {
	w     io.Writer
	log   *slog.Logger
	stage string
	bar   *progress
}

// showStage shows how many units of a stage are finished. If the stage is new, showStage first finishes the bar of the previous stage.
func (s *stageProgress) showStage(ctx context.Context, stage, unit string, done, total int64) {
	if s.stage != stage {
		s.finish(ctx)
		s.stage, s.bar = stage, newProgress(s.w, s.log, stage, unit, total)
	}
	s.bar.showDone(ctx, done, 0)
}

// finish ends the progress of the current stage, if there is one, and logs the elapsed time of the stage.
func (s *stageProgress) finish(ctx context.Context) {
	if s.bar != nil {
		s.bar.finish(ctx)
	}
	s.bar = nil
}
