package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// profileTime is how long each kind of work runs while its profiles are taken.
const profileTime = 10 * time.Second

// minShare is the smallest share, in percent, of the CPU time or of the memory with which the page shows a part. A part is a package: see partOf.
const minShare = 3

// profiledWork is a kind of work whose CPU time and memory are profiled.
type profiledWork struct {
	name string
	run  step
	// own is true if the work is done by this process, and false if it is done by the server on PostgreSQL.
	own bool
}

// profiledWorks returns the kinds of work that the page of profiles shows.
func (b *bench) profiledWorks() []profiledWork {
	o := b.pg.large
	get := func(path func(int) string) step { return b.newGetStep(o, path) }
	history, _ := videoHistoryPathAndQuery(o, readDays)
	shortHistory, _ := videoHistoryPathAndQuery(o, 30)
	lists := filteredListings(100)
	return []profiledWork{
		{name: "a list of 5,000 videos by created_at", run: get(sameInEachRound(orderedListing("created_at", min(5000, o.videos)).path()))},
		{name: "a list of 100 videos by created_at", run: get(sameInEachRound(orderedListing("created_at", 100).path()))},
		{name: "a list of 100 videos of a username", run: get(sameInEachRound(lists[0].path()))},
		{name: "a list of 100 videos of a collection", run: get(sameInEachRound(lists[2].path()))},
		{name: "a history of 730 days", run: get(history)},
		{name: "a history of 30 days", run: get(shortHistory)},
		{name: "the organisation's history of 30 days", run: get(sameInEachRound(organisationHistoryPath()))},
		{name: "one video", run: get(oneVideoPath(o))},
		{name: "GET /authenticate", run: get(sameInEachRound("/authenticate"))},
		{name: fmt.Sprintf("tracking %d new links", bulkLinks), run: b.newTrackStep(b.pg.changed, seriesProfile)},
		{name: fmt.Sprintf("storing a batch of %d videos", b.batchSize()), run: newBatchStep(b.pg, b.batchSize()), own: true},
	}
}

// writeProfiles profiles each kind of work, and writes a page with the results to the given file.
func (b *bench) writeProfiles(ctx context.Context, file string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	// The batches of the collector are stored by this process, so it serves its own profiles.
	routes := http.NewServeMux()
	routes.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	routes.Handle("GET /debug/pprof/allocs", pprof.Handler("allocs"))
	go func() { _ = http.Serve(l, routes) }() //nolint:gosec // the only client is this process
	r, err := b.newReport(ctx)
	if err != nil {
		return err
	}
	var page strings.Builder
	fmt.Fprintf(&page, profilesIntroduction, r.Date, b.revision, r.Machine.CPU, r.Machine.Cores, r.Machine.Go, r.Machine.PostgreSQL, r.Data.Videos, profileTime.Seconds(), minShare)
	for _, w := range b.profiledWorks() {
		fmt.Fprintln(os.Stderr, "profiling", w.name)
		address := b.pg.metricsAddress
		if w.own {
			address = "http://" + l.Addr().String()
		}
		table, err := b.profileWork(ctx, w, address)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Fprintf(&page, "\n## %s%s\n\n%s", strings.ToUpper(w.name[:1]), w.name[1:], table)
	}
	return os.WriteFile(file, []byte(page.String()), 0o600)
}

const profilesIntroduction = `# Profiles

<!-- This page is written by ` + "`make profiles`" + `. -->

Measured on %s, revision ` + "`%s`" + `, on %s with %d cores, %s and PostgreSQL %s. The organisation had %d videos. One caller repeated each kind of work for %.0f seconds.
The profiles are those of the process that did the work: the server, or for batches the program that stored them. PostgreSQL is another process, so its time is not included. [Parts of a read](reads.md) and [Where the time of writes goes](writes.md) say what is left of each, and why.

A part is a package. It has the CPU time and the allocated memory of its own functions, and of the functions of Go's standard library that they call. Parts with less than
%d %% of both are left out.
`

// profileWork repeats the work and takes a CPU profile and a profile of allocations from the process at the given address. It returns a table in
// Markdown.
func (b *bench) profileWork(ctx context.Context, w profiledWork, address string) (string, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	type work struct {
		runs int
		err  error
	}
	done := make(chan work, 1)
	go func() {
		var all work
		for all.err == nil && working.Err() == nil {
			_, all.err = w.run(ctx, all.runs)
			all.runs++
		}
		done <- all
	}()
	cpu := make(chan profileResult, 1)
	go func() { cpu <- b.fetchProfile(ctx, address, "profile") }()
	m := b.fetchProfile(ctx, address, "allocs")
	c := <-cpu
	stop()
	all := <-done
	if err := cmp.Or(all.err, c.err, m.err); err != nil {
		return "", err
	}
	cpuParts, cpuTotal := sumByPart(c.profile, "cpu")
	memoryParts, bytes := sumByPart(m.profile, "alloc_space")
	_, objects := sumByPart(m.profile, "alloc_objects")
	runs := int64(all.runs)
	var table strings.Builder
	fmt.Fprintf(&table, "%d runs. Each took %.3f ms of CPU time of the process, and allocated %d objects with %d KiB.\n\n| Part | CPU time | Memory |\n|---|--:|--:|\n", runs,
		float64(cpuTotal)/1e6/float64(runs), objects/runs, bytes/runs>>10)
	byTime := func(a, b string) int { return cmp.Or(cmp.Compare(cpuParts[b], cpuParts[a]), cmp.Compare(a, b)) }
	for _, part := range slices.SortedFunc(maps.Keys(cpuParts), byTime) {
		if share, memoryShare := 100*cpuParts[part]/max(1, cpuTotal), 100*memoryParts[part]/max(1, bytes); share >= minShare || memoryShare >= minShare {
			fmt.Fprintf(&table, "| %s | %d %% | %d %% |\n", part, share, memoryShare)
		}
	}
	return table.String(), nil
}

// profileResult is a profile, or the error that prevented it.
type profileResult struct {
	profile *profile.Profile
	err     error
}

// fetchProfile takes a profile of a process for profileTime.
func (b *bench) fetchProfile(ctx context.Context, address, kind string) (result profileResult) {
	var content bytes.Buffer
	if result.err = b.getWithoutToken(ctx, fmt.Sprintf("%s/debug/pprof/%s?seconds=%.0f", address, kind, profileTime.Seconds()), &content); result.err == nil {
		result.profile, result.err = profile.Parse(&content)
	}
	return result
}

// sumByPart adds the values of a profile for each part of the program.
func sumByPart(p *profile.Profile, valueType string) (parts map[string]int64, total int64) {
	parts = map[string]int64{}
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == valueType })
	for _, s := range p.Sample {
		parts[partOf(s)] += s.Value[value]
		total += s.Value[value]
	}
	return parts, total
}

// partOf returns the package of the innermost function of a sample that is not in Go's standard library. If there is no such function, it returns
// "net/http" if the sample has a function of net/http, and "the Go runtime" otherwise, as for garbage collection and the scheduler.
func partOf(s *profile.Sample) string {
	part := "the Go runtime"
	for _, location := range s.Location {
		for _, line := range location.Line {
			name := line.Function.Name
			// A name is such as "github.com/reeltally/reeltally/store.(*Org).ListVideos" or "net/http.(*conn).serve".
			slash := strings.LastIndex(name, "/") + 1
			dot := strings.Index(name[slash:], ".")
			if dot < 0 {
				continue
			}
			path := name[:slash+dot]
			switch first, _, _ := strings.Cut(path, "/"); {
			case strings.Contains(first, "."):
				return strings.TrimPrefix(path, "github.com/reeltally/reeltally/")
			case path == "net/http":
				part = path
			}
		}
	}
	return part
}
