package store

import (
	"context"
	"errors"

	"github.com/reeltally/reeltally/store/internal/db"
)

// ReplicaState is the state of the replica for reads.
type ReplicaState = db.ReplicaState

// Replica returns the state of the replica for reads. The result ok is false if there is no replica.
func (s *Store) Replica(ctx context.Context) (state ReplicaState, ok bool) { return s.db.Replica(ctx) }

// FromReplica returns the result of the function read, which must not write. If there is a replica, FromReplica calls read with an Org
// whose lists and histories come from the replica, and which has every change that was committed before the call. If the replica lacks such
// a change or fails, or if there is no replica, FromReplica calls read with o.
func FromReplica[R any](ctx context.Context, o *Org, read func(*Org) (R, error)) (R, error) {
	if !o.s.db.HasReplica() {
		return read(o)
	}
	v, err := o.version(ctx)
	if err != nil {
		return *new(R), err
	}
	s := *o.s
	s.db = o.s.db.OnReplica(o.id, v.Version)
	result, err := read(&Org{s: &s, id: o.id, known: &knownVersion{v, true}})
	if errors.Is(err, db.ErrReplica) {
		return read(o)
	}
	return result, err
}
