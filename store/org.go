package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// Org gives access to the data of one organisation. Other packages reach this data only through Org. Org treats an id, link or name from another
// organisation's data like an unknown one.
type Org struct {
	s     *Store
	id    uuid.UUID     // id of the organisation
	known *knownVersion // version that the lists use; nil if each list must read the version itself
}

// knownVersion is the version of the organisation's data that the lists of an Org use. isRead is false until the Org has read the version.
type knownVersion struct {
	Version
	isRead bool
}

// Org returns an Org for the organisation with the given id. It does not check that the organisation exists: an unknown organisation has no
// data.
func (s *Store) Org(id uuid.UUID) *Org { return &Org{s: s, id: id} }

// ID returns the organisation's id.
func (o *Org) ID() uuid.UUID { return o.id }

// DatabaseOf returns the database with all organisations' data. Only store/backfill calls it. Org
// has no such method, because its methods reach only one organisation.
func DatabaseOf(o *Org) *db.DB { return o.s.db }

// scopedQuery returns a query for the organisation's rows of a table, outside of a transaction.
func (o *Org) scopedQuery(ctx context.Context, table string) *gorm.DB {
	return db.Scoped(o.s.db.Read(ctx), table, o.id)
}

// changeData runs a function in a transaction that writes the organisation's data. The transaction first raises the organisation's version.
func (o *Org) changeData(ctx context.Context, write func(tx *gorm.DB) error) error {
	return o.s.db.Change(ctx, o.id, write)
}

// Version shows whether an organisation's data have changed. If two reads return equal versions, the data have not changed between the reads.
type Version struct {
	// Version rises with every change of the organisation's data. It is 0 for an unknown organisation.
	Version int64
	// Late is the most recent due time of the delayed fetches, or nil: see lateCutoff. It is needed because a
	// fetch becomes delayed without a write, so the field Version does not rise.
	Late *db.Instant
	// Due is the most recent due time, up to now, of a first fetch of a video or account; nil if no first fetch is due. It is needed because the
	// FetchDetail changes without a write when a first fetch becomes due.
	Due *db.Instant

	videos  int64 // number of tracked videos
	stopped int64 // number of videos whose tracking was stopped
	labels  int64 // version of the labels: it rises with every change of collections, and may rise with other changes
}

// AtVersion returns an Org whose lists take the version and totals from v, without reading them.
// The argument v comes from the method Version.
func (o *Org) AtVersion(v Version) *Org { return &Org{s: o.s, id: o.id, known: &knownVersion{v, true}} }

// WithRememberedVersion returns an Org that reads the version of the data together with the first list or
// history, and uses this version for later lists. It is not safe for concurrent use.
func (o *Org) WithRememberedVersion() *Org { return &Org{s: o.s, id: o.id, known: &knownVersion{}} }

// RememberedVersion returns the version that the Org remembers for its lists. It returns false if
// the Org remembers no version.
func (o *Org) RememberedVersion() (v Version, ok bool) {
	if o.known == nil {
		return Version{}, false
	}
	return o.known.Version, o.known.isRead
}

// version returns the version that the Org remembers for its lists, or else reads the current version from the database.
func (o *Org) version(ctx context.Context) (Version, error) {
	if v, ok := o.RememberedVersion(); ok {
		return v, nil
	}
	v, err := o.Version(ctx)
	if err == nil {
		o.rememberVersion(v)
	}
	return v, err
}

// rememberVersion sets the version for later lists, if the Org remembers versions. The caller must
// have read the version before any other data.
func (o *Org) rememberVersion(v Version) {
	if o.known != nil {
		*o.known = knownVersion{v, true}
	}
}

// unchangedSince returns a function that returns true if the organisation's data still have the given version.
func (o *Org) unchangedSince(v Version) func(context.Context) (bool, error) {
	return func(ctx context.Context) (same bool, err error) {
		return same, o.s.db.EachRow(ctx, o.scopedQuery(ctx, "organisation_totals").Select("version"), func(row *db.Values) error {
			same = row.Count(0) == v.Version
			return nil
		})
	}
}

// eachRow runs a SELECT. If the Org must remember the version and has not read it yet, eachRow reads the version first. On PostgreSQL, it sends both
// statements together.
func (o *Org) eachRow(ctx context.Context, rows db.Select) error {
	if _, ok := o.RememberedVersion(); ok || o.known == nil {
		return o.s.db.EachRowOf(ctx, rows)
	}
	var v Version
	err := o.s.db.EachRowOf(ctx, o.readVersion(&v), rows)
	if err == nil {
		o.rememberVersion(v)
	}
	return err
}

// Version returns the version of the organisation's data. Callers read it before the data. If a later call
// returns an equal version, data and fetch statuses have not changed.
func (o *Org) Version(ctx context.Context) (v Version, err error) {
	return v, o.s.db.EachRowOf(ctx, o.readVersion(&v))
}

// versionQuery is the SQL query for the Version of an organisation. To find Version.Late and Version.Due, it reads one index
// entry for each pair of a table and a fetch status.
var versionQuery = func() string {
	newest := func(before string, statuses ...queue.FetchStatus) string {
		var of []string
		for _, table := range []string{"videos", "accounts"} {
			for _, status := range statuses {
				of = append(of, fmt.Sprintf("SELECT MAX(%[1]s.next_fetch_at) AS due FROM %[1]s WHERE %[1]s.organisation_id = @org AND %[1]s.fetch_status = '%[2]s' AND %[1]s.next_fetch_at < %[3]s", table, status, before))
			}
		}
		return "(SELECT MAX(due) FROM (" + strings.Join(of, " UNION ALL ") + ") newest)"
	}
	return "SELECT version, videos, videos_removed, labels_version, " + newest("@late", queue.DelayableStatuses...) + " AS late, " + newest("@now", queue.FetchPending) +
		" AS due FROM organisation_totals WHERE organisation_totals.organisation_id = @org"
}()

// readVersion returns a query that reads the organisation's Version into *v.
func (o *Org) readVersion(v *Version) db.Select {
	now := o.s.db.Now()
	return o.s.queries.version.Select(map[string]any{"org": o.id, "now": now, "late": lateCutoff(now)}, func(row *db.Values) error {
		*v = Version{Version: row.Count(0), videos: row.Count(1), stopped: row.Count(2), labels: row.Count(3), Late: row.OptionalInstant(4), Due: row.OptionalInstant(5)}
		return nil
	})
}
