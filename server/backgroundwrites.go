package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// backgroundWrites are small writes to the database that no response waits for, for example the write of a token's last use.
type backgroundWrites struct {
	log     *slog.Logger
	running sync.WaitGroup // the writes that have not finished; Server.Close waits for them
}

// startWrite calls writeRecord in the background and returns immediately. The write continues if
// ctx is cancelled. An error is logged with recordName and logAttributes.
func (b *backgroundWrites) startWrite(ctx context.Context, recordName string, writeRecord func(context.Context) error, logAttributes ...any) {
	b.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := writeRecord(ctx); err != nil {
			b.log.WarnContext(ctx, "cannot write to the database in the background", append(logAttributes, "value", recordName, "error", err)...)
		}
	})
}
