package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/sandbox"
)

type sandboxCommand struct {
	boot.Logging
	Listen string `default:"127.0.0.1:9090" placeholder:"ADDRESS" help:"HOST:PORT at which the sandbox listens. Port 0 means any free port."`
	Seed   uint64 `default:"0" placeholder:"N" help:"Seed of the made-up data. Each seed gives different videos and accounts."`
}

// Run runs the sandbox until ctx ends. On standard output, Run prints only the settings with which
// other programs use the sandbox, one a line.
func (c *sandboxCommand) Run(ctx context.Context, p boot.Process) (err error) {
	defer func() { err = boot.IgnoreShutdown(ctx, err) }()
	logger := c.Logger(p.Stderr)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("the sandbox cannot listen on %s (--listen): %w", c.Listen, err)
	}
	box := newSandbox(c.Seed, logger)
	if err := box.WriteSettings(p.Stdout, boot.URL(l)); err != nil {
		return err
	}
	logger.InfoContext(ctx, "serving the sandbox", "address", boot.URL(l))
	return boot.Serve(ctx, l, box.Handler(), logger)
}

// newSandbox returns a sandbox that uses the clock of this machine.
func newSandbox(seed uint64, logger *slog.Logger) *sandbox.Sandbox {
	return sandbox.New(sandbox.Options{Now: time.Now, Logger: logger, Seed: seed})
}
