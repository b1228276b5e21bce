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

// FromReplica calls readData and returns its result. The function readData must not write. FromReplica passes an Org to readData: its lists and
// histories are read from the replica, which must have every change that was committed before the call of FromReplica.
//
// If the replica fails or lacks such a change, FromReplica calls readData again with the given Org, which reads from the primary. If there is no
// replica, it calls readData only with the given Org.
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
