package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally/store"
)

// dataKind knows whether the sandbox made up the numbers in the database. It is safe for concurrent use.
type dataKind struct {
	store  *store.Store
	now    func() time.Time
	madeUp atomic.Bool  // while the database has no numbers, the value is that of Options.Sandbox
	known  atomic.Bool  // true after numbers were found in the database; madeUp then never changes again, because made-up and real numbers are never mixed
	readAt atomic.Int64 // time of the last read of the database, in nanoseconds since 1970
}

// last returns true if the numbers are made up, as far as earlier reads have shown. It does not read the database.
func (k *dataKind) last() bool { return k.madeUp.Load() }

// read returns true if the numbers are made up. It reads the database, until the database has numbers.
func (k *dataKind) read(ctx context.Context) bool {
	if k.known.Load() {
		return k.last()
	}
	kind, err := k.store.DataKind(ctx)
	if err != nil {
		return k.last()
	}
	k.readAt.Store(k.now().UnixNano())
	if kind != store.NoData {
		k.madeUp.Store(kind == store.MadeUpData)
		k.known.Store(true)
	}
	return k.last()
}

// readRarely does the same as the method read. But while the database has no numbers, it reads the database at most once in identityTTL.
func (k *dataKind) readRarely(ctx context.Context) bool {
	if k.now().Sub(time.Unix(0, k.readAt.Load())) < identityTTL {
		return k.last()
	}
	return k.read(ctx)
}
