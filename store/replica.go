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

// FromReplica calls readData and returns its result. The function readData must not write. It receives an Org whose lists and histories
// come from the replica.
//
// The parameter o is an Org that reads from the primary. If the replica fails or its data are older than the version of o, FromReplica calls
// readData a second time, with o. The version of o is the version that o remembers. If o remembers no version, FromReplica reads the current
// version first. If there is no replica, or if it is known not to answer at present, FromReplica calls readData only once, with o.
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
