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

// start calls the function write in the background and returns immediately. The write continues if ctx is cancelled, and has a time limit of
// five seconds. If it fails, the error is logged. The log line also contains the parameter attributes and the parameter value, which says
// what was to be written.
func (l *laterWrites) start(ctx context.Context, value string, write func(context.Context) error, attributes ...any) {
	l.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := write(ctx); err != nil {
			l.log.WarnContext(ctx, "cannot write to the database in the background", append(attributes, "value", value, "error", err)...)
		}
	})
}
