package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/sandbox"
)

type sandboxCommand struct {
	boot.Logging
	Listen string `default:"127.0.0.1:9090" placeholder:"ADDRESS" help:"HOST:PORT of the sandbox; port 0 takes a free one."`
	Seed   uint64 `default:"0" placeholder:"N" help:"Another number is another world."`
}

// Run prints the settings, one a line and nothing else, once the sandbox can be reached, and answers until ctx ends.
func (c *sandboxCommand) Run(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	logger := c.Logger(p.Stderr)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("the sandbox cannot listen at %s (--listen): %w", c.Listen, err)
	}
	box := newSandbox(c.Seed, logger)
	if _, err := fmt.Fprintln(p.Stdout, strings.Join(box.Settings(boot.URL(l)), "\n")); err != nil {
		return err
	}
	logger.InfoContext(ctx, "the sandbox answers", "address", boot.URL(l))
	return boot.Serve(ctx, l, box.Handler(), logger)
}

func newSandbox(seed uint64, logger *slog.Logger) *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{Now: time.Now, Logger: logger, Seed: seed})
}
