package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// laterWrites are small writes to the database that no response waits for, for example the write of a token's last use.
type laterWrites struct {
	log     *slog.Logger
	running sync.WaitGroup // the writes that have not finished; Server.Close waits for them
}

// add starts the function write, and does not wait for it. The write does not end with ctx, but after five seconds. If it fails, the error is
// logged with value, which says what was to be written, and with the other attributes.
func (l *laterWrites) add(ctx context.Context, value string, write func(context.Context) error, attributes ...any) {
	l.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := write(ctx); err != nil {
			l.log.WarnContext(ctx, "cannot write a value to the database", append(attributes, "value", value, "error", err)...)
		}
	})
}
