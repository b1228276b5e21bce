package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is a server that answers requests for the same list of videos as ReelTally, but is written with other frameworks. The benchmark
// compares its speed with ReelTally's.
type peer struct {
	name  string
	path  func(o *organisation, rows int) string // returns the path of a page of videos, ordered by created_at
	goals map[int]float64                        // lowest allowed ratio of the peer's time to ReelTally's time; the key is the page size
	start func(ctx context.Context) (address string, err error)
}

// peerCases returns the cases that compare each peer with ReelTally. A ratio is the peer's time divided by ReelTally's
// time. If the ratio is above 1, ReelTally is faster.
func peerCases(b *bench) []benchCase {
	list := func(o *organisation, rows int) string { return fmt.Sprintf("/%s/videos?limit=%d", o.id, rows) }
	peers := []peer{{name: "echo and GORM", goals: map[int]float64{5000: 8, 100: 20}, path: list,
		start: func(ctx context.Context) (string, error) { return b.startPeer(b.pg.newCommand(ctx, "gorm")) }}}
	if b.peers == "all" {
		peers = append(peers,
			peer{name: "fastify and pg", goals: map[int]float64{5000: 10}, path: list, start: b.startFastify},
			peer{name: "PocketBase with skipTotal", goals: map[int]float64{1000: 20}, start: b.startPocketBase, path: func(o *organisation, rows int) string {
				return fmt.Sprintf("/api/collections/videos/records?skipTotal=1&perPage=%d&sort=-created_at,-id&filter=%s", rows,
					url.QueryEscape(fmt.Sprintf("organisation_id='%s' && removed=false", o.id)))
			}})
	}
	var out []benchCase
	for _, p := range peers {
		var address string
		start := func(ctx context.Context) (err error) {
			if address == "" {
				address, err = p.start(ctx)
			}
			return err
		}
		for _, size := range []int{5000, 1000, 100} {
			goal, ok := p.goals[size]
			if !ok {
				continue
			}
			rows := min(size, b.pg.large.videos)
			ours, path := orderedListing("created_at", rows), p.path(b.pg.large, rows)
			out = append(out, benchCase{group: "Peers", name: fmt.Sprintf("%d videos from %s, compared with ReelTally", rows, p.name), goal: goal, atLeast: true,
				measured: repeatedStep(ours.repetitions(), timedStep(func(ctx context.Context, _ int) error { return b.getWithoutToken(ctx, address+path, io.Discard) })),
				limit:    b.newListStep(ours),
				prepare:  []func(context.Context) error{start, func(ctx context.Context) error { return b.checkPeer(ctx, address+path, rows) }}})
		}
	}
	return out
}

const installed = ".cache/bench" // folder in which startFastify and startPocketBase install their programs

// startFastify installs and starts bench/peers/fastify, a server for the list of videos that uses fastify and pg. It returns the server's
// address. It needs Node and npm.
func (b *bench) startFastify(ctx context.Context) (string, error) {
	folder := filepath.Join(installed, "fastify")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, os.DirFS("bench/peers/fastify")); err != nil {
		return "", err
	}
	install := exec.CommandContext(ctx, "npm", "ci", "--loglevel=error")
	install.Dir, install.Stdout, install.Stderr = folder, os.Stderr, os.Stderr
	if err := install.Run(); err != nil {
		return "", fmt.Errorf("npm ci in %s: %w", folder, err)
	}
	program, err := exec.LookPath("node")
	if err != nil {
		return "", err
	}
	node := b.pg.newCommand(ctx, program, filepath.Join(folder, "server.js"))
	return b.startPeer(node)
}

// startPocketBase builds and starts the server bench/peers/pocketbase, and returns the
// server's address. The server copies the videos of bench.pg.large into its own database.
func (b *bench) startPocketBase(ctx context.Context) (string, error) {
	program, err := filepath.Abs(filepath.Join(installed, "pocketbase"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", "bench/peers/pocketbase", "-o", program, ".") //nolint:gosec // the program is in a folder of the developer
	build.Env, build.Stdout, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("go build of PocketBase: %w", err)
	}
	folder, err := os.MkdirTemp("", "reeltally-bench-")
	if err != nil {
		return "", err
	}
	b.stop = append(b.stop, func() { _ = os.RemoveAll(folder) })
	return b.startPeer(b.pg.newCommand(ctx, program, b.pg.large.id.String(), folder))
}

// checkPeer requests a page of videos from another implementation of the list. It returns an error if the page does not have the expected
// number of videos.
func (b *bench) checkPeer(ctx context.Context, address string, expected int) error {
	var body bytes.Buffer
	if err := b.getWithoutToken(ctx, address, &body); err != nil {
		return err
	}
	var answer struct {
		Data  []json.RawMessage
		Items []json.RawMessage
	}
	if err := json.Unmarshal(body.Bytes(), &answer); err != nil {
		return err
	}
	if n := len(answer.Data) + len(answer.Items); n != expected {
		return fmt.Errorf("GET %s gave %d videos instead of %d", address, n, expected)
	}
	return nil
}

// startPeer starts a program that prints its address as the first line, and returns the address. bench.close kills the program.
func (b *bench) startPeer(c *exec.Cmd) (string, error) {
	stdout, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return "", err
	}
	b.stop = append(b.stop, func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s did not print its address: %w", c.Path, err)
	}
	return strings.TrimSpace(address), nil
}
