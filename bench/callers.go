package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/reeltally/reeltally/bench/report"
)

const (
	callers      = 50 // number of concurrent callers
	callerPages  = 6  // number of pages that each caller reads
	callersLabel = "Callers: 50 callers and the collector"
)

// measureCallers measures how fast many concurrent callers read long pages while the collector
// stores batches of answers.
func (b *bench) measureCallers(ctx context.Context) ([]report.Fact, error) {
	if !regexp.MustCompile(b.only).MatchString(callersLabel) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "%d callers read %d pages each\n", callers, callerPages)
	before, err := b.residentMemory()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	collected := make(chan collectResult, 1)
	reading, stop := context.WithCancel(ctx)
	go func() { collected <- b.collectUntil(ctx, reading) }()
	took, refused, peak, err := b.readPages(ctx)
	stop()
	collector := <-collected
	if err := errors.Join(err, collector.err); err != nil {
		return nil, err
	}
	pages := fmt.Sprintf("%d callers of %d organisations; each caller reads %d pages of %d videos while the collector stores batches of %d videos", callers, len(b.organisationsToRead()),
		callerPages, b.videosInChangedOrg()/2, b.batchSize())
	return []report.Fact{
		{Name: pages, Value: fmt.Sprintf("p50 %.0f ms, p99 %.0f ms, %d of %d refused with 503", milliseconds(median(took)), milliseconds(percentile(took, 99)),
			refused, callers*callerPages)},
		{Name: "storing a batch while the callers read", Value: fmt.Sprintf("p50 %.0f ms, %d stored", milliseconds(median(collector.took)), len(collector.took))},
		{Name: "resident memory of the server", Value: fmt.Sprintf("%.0f MiB before, %.0f MiB at most", before, peak)},
	}, nil
}

// collectResult is the result of collectUntil: the time that it took to store each batch of answers, and the error that ended the work, if any.
type collectResult struct {
	took []time.Duration
	err  error
}

// collectUntil stores batches of answers of sources, as a collector does, until stopCtx is cancelled. It stores at least one batch.
func (b *bench) collectUntil(ctx, stopCtx context.Context) (c collectResult) {
	for len(c.took) == 0 || stopCtx.Err() == nil {
		took, err := newBatchStep(b.pg, b.batchSize())(ctx, 0)
		if err != nil {
			c.err = err
			return c
		}
		c.took = append(c.took, took)
	}
	return c
}

// organisationsToRead returns the organisations whose pages the callers read. There are several organisations, because the server handles at
// most four requests of one organisation at the same time.
func (b *bench) organisationsToRead() []*organisation {
	return append([]*organisation{b.pg.changed}, b.pg.others...)
}

// readPages lets all callers read pages at the same time. `refused` counts the responses with status
// 503. `peak` is the server's highest resident memory in MiB.
func (b *bench) readPages(ctx context.Context) (took []time.Duration, refused int, peak float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	path := orderedListing("created_at", b.videosInChangedOrg()/2).path()
	var mutex sync.Mutex
	var running sync.WaitGroup
	readers := b.organisationsToRead()
	for caller := range callers {
		running.Go(func() {
			o := readers[caller%len(readers)]
			for range callerPages {
				start := time.Now()
				err := b.sendAs(ctx, b.pg, o, http.MethodGet, path, nil, io.Discard)
				if err != nil && !errors.Is(err, errUnavailable) {
					cancel(err)
					return
				}
				mutex.Lock()
				if err != nil {
					refused++
				} else {
					took = append(took, time.Since(start))
				}
				mutex.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	for {
		memory, memoryErr := b.residentMemory()
		peak = max(peak, memory)
		select {
		case <-done:
			return took, refused, peak, errors.Join(context.Cause(ctx), memoryErr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// residentMemory returns the resident memory of the server in MiB. On systems without /proc, it returns 0.
func (b *bench) residentMemory() (float64, error) {
	text := procField(fmt.Sprintf("/proc/%d/status", b.pg.server.Process.Pid), "VmRSS")
	if text == "" {
		return 0, nil
	}
	var kilobytes float64
	_, err := fmt.Sscan(text, &kilobytes)
	return kilobytes / 1024, err
}
