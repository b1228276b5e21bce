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

// FromReplica calls readData with an Org whose lists and histories come from the replica. If the replica fails
// or is outdated, it calls readData with o, which reads from the primary. readData must not write.
func FromReplica[R any](ctx context.Context, o *Org, readData func(*Org) (R, error)) (R, error) {
	if !o.s.db.HasReplica() {
		return readData(o)
	}
	// The replica must have the version that o remembers, or else the current version.
	v, err := o.Version(ctx)
	if err != nil {
		return *new(R), err
	}
	s := *o.s
	s.db = o.s.db.OnReplica(o.id, v.Version)
	result, err := readData(&Org{s: &s, id: o.id, at: &v})
	if errors.Is(err, db.ErrReplica) {
		// The Org o reads from the primary.
		return readData(o)
	}
	return result, err
}
