package store

import (
	"context"
	"errors"

	"github.com/reeltally/reeltally/store/internal/db"
)

// ReplicaState is the state of the replica for reads.
type ReplicaState = db.ReplicaState

// Replica returns the state of the replica for reads. It returns false if there is no replica.
func (s *Store) Replica(ctx context.Context) (state ReplicaState, ok bool) { return s.db.Replica(ctx) }

// FromReplica returns the result of readData, which must not write. If possible, it passes to readData an Org whose lists and histories come from the
// replica, with every change that was committed before the call.
//
// If there is no replica, FromReplica calls readData with o, which reads from the primary. It also does so if the replica fails or lacks a change.
func FromReplica[R any](ctx context.Context, o *Org, readData func(*Org) (R, error)) (R, error) {
	if !o.s.db.HasReplica() {
		return readData(o)
	}
	v, err := o.version(ctx)
	if err != nil {
		return *new(R), err
	}
	s := *o.s
	s.db = o.s.db.OnReplica(o.id, v.Version)
	result, err := readData(&Org{s: &s, id: o.id, known: &knownVersion{v, true}})
	if errors.Is(err, db.ErrReplica) {
		return readData(o)
	}
	return result, err
}
