package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/reeltally/reeltally/bench/report"
)

// benchCase is one comparison of the benchmark: the time of the step "measured" is divided by the
// time of the step "limit".
type benchCase struct {
	group, name string
	goal        float64 // highest allowed ratio of the two times
	atLeast     bool    // if true, goal is the lowest allowed ratio instead of the highest
	measured    step
	limit       step                          // the step with which `measured` is compared; it does the same work in the fastest known way, or in another situation
	prepare     []func(context.Context) error // functions that run once, before all measurements; some also check that the responses are right
	onlyHTTP    bool                          // if true, the step "limit" sends a request to a server that uses only net/http
	withoutHTTP bool                          // if true, the step "measured" sends an HTTP request, and the step "limit" sends none
}

// step does some work and returns the duration of this work, without its preparations. The parameter
// `round` counts from 0.
type step func(ctx context.Context, round int) (time.Duration, error)

func timedStep(f func(ctx context.Context, round int) error) step {
	return func(ctx context.Context, round int) (time.Duration, error) {
		start := time.Now()
		err := f(ctx, round)
		return time.Since(start), err
	}
}

// repeatedStep returns a step that runs s several times and returns the mean time. A single run of a
// short step cannot be measured precisely.
func repeatedStep(times int, s step) step {
	return func(ctx context.Context, round int) (time.Duration, error) {
		var total time.Duration
		for range times {
			took, err := s(ctx, round)
			if err != nil {
				return 0, err
			}
			total += took
		}
		return total / time.Duration(times), nil
	}
}

// againStep returns a step that runs s once more than repeatedStep does, before the measurement. It is for requests for which the server
// remembers something, such as the number of rows, until the data change. Other cases change the data.
func againStep(times int, s step) step {
	repeated := repeatedStep(times, s)
	return func(ctx context.Context, round int) (time.Duration, error) {
		if _, err := s(ctx, round); err != nil {
			return 0, err
		}
		return repeated(ctx, round)
	}
}

// warmUp is the number of rounds before the measurement. These rounds fill the caches, and their times are not used.
const warmUp = 2

// measureCases runs all cases in rounds and returns the median times and their ratios.
func measureCases(ctx context.Context, cases []benchCase, rounds int) ([]report.Result, error) {
	for _, c := range cases {
		for _, prepare := range c.prepare {
			if err := prepare(ctx); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.group, c.name, err)
			}
		}
	}
	measured, limits := make([][]time.Duration, len(cases)), make([][]time.Duration, len(cases))
	for round := range rounds + warmUp {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds+warmUp)
		for i, c := range cases {
			// The step "measured" runs first in each round. If it fills a cache, this makes only the
			// step "limit" faster.
			for _, part := range []struct {
				run  step
				into *[]time.Duration
			}{{c.measured, &measured[i]}, {c.limit, &limits[i]}} {
				took, err := part.run(ctx, round)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", c.group, c.name, err)
				}
				if round >= warmUp {
					*part.into = append(*part.into, took)
				}
			}
		}
	}
	results := make([]report.Result, len(cases))
	for i, c := range cases {
		results[i] = report.Result{Group: c.group, Name: c.name, Goal: c.goal, AtLeast: c.atLeast, Measured: milliseconds(median(measured[i])), Limit: milliseconds(median(limits[i]))}
		results[i].Ratio = results[i].Measured / results[i].Limit
	}
	setLowestRatios(results, cases)
	return results, nil
}

// setLowestRatios sets Result.LowestRatio of each case whose field withoutHTTP is true.
func setLowestRatios(results []report.Result, cases []benchCase) {
	http := slices.IndexFunc(cases, func(c benchCase) bool { return c.onlyHTTP })
	// If the flag -only excludes the case with onlyHTTP, its duration is unknown, so the lowest ratios cannot be computed.
	if http < 0 {
		return
	}
	for i, c := range cases {
		if c.withoutHTTP {
			results[i].LowestRatio = (results[i].Limit + results[http].Limit) / results[i].Limit
		}
	}
}

// median returns the middle value of the sorted values. If there are two middle values, it returns the higher one.
func median(values []time.Duration) time.Duration { return percentile(values, 50) }

// percentile returns a percentile of the values, such as the median for 50 percent. It panics if there are no values.
func percentile(values []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
