package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// Version shows whether an organisation's data have changed. If two reads return equal versions, the data have not changed between the reads.
//
// Versions are used as follows:
//
//   - A transaction that writes the organisation's data raises the version before all other writes: see changeData and db.RaiseVersions. The tests
//     refuse other writes.
//   - A read that needs the version reads it before the data. If a write comes between the two, the data are newer than their version. The next read
//     then finds a higher version, and reads the data again.
//   - The caches of a Store keep each value together with the version that was read before the value. The value is valid as long as the version
//     is the same. Labels are compared by the field labels, and all other values by the field Version. Values of older versions are dropped when their
//     sizedCache is full.
//   - An Org of the method Store.Org reads the version again for each list. An Org of AtVersion uses the version that its caller has read. An Org of OnVersion uses the
//     version that its first list or history has read. So the ETag and all parts of a response have the same version.
type Version struct {
	// Version rises with every change of the organisation's data. It is 0 for an unknown organisation.
	Version int64
	// Late is the most recent time at which a fetch was due that is now delayed; nil if no fetch is delayed: see lateCutoff. A fetch becomes delayed
	// without a write, so the field Version does not rise.
	Late *db.Instant
	// Due is the most recent time, not after now, at which a first fetch of a video or account became due; nil if no first fetch is due. The text
	// FetchDetail then changes without a write, so the field Version does not rise.
	Due *db.Instant

	videos  int64 // number of tracked videos
	stopped int64 // number of videos whose tracking was stopped
	labels  int64 // version of the labels: it rises with every change of collections, and may rise with other changes
}

// AtVersion returns an Org whose reads use the version v and its totals, without reading them. The argument v comes from the method Version.
func (o *Org) AtVersion(v Version) *Org { return &Org{s: o.s, id: o.id, at: &v} }

// OnVersion returns an Org that reads the version of the data together with the first list or history, calls f with it, and uses this version for
// later lists. It is not safe for concurrent use.
func (o *Org) OnVersion(f func(Version)) *Org { return &Org{s: o.s, id: o.id, onVersion: f} }

// Version returns the version that the Org uses, or else reads the present version. Callers read it before the data. If a later call
// returns an equal version, data and fetch statuses have not changed.
func (o *Org) Version(ctx context.Context) (v Version, err error) {
	if o.at != nil {
		return *o.at, nil
	}
	return v, o.s.db.EachRowOf(ctx, o.readVersion(&v))
}

// eachRow runs a SELECT. If the Org must remember the version and has not read it yet, eachRow reads the version first. On PostgreSQL, it sends both
// statements together.
func (o *Org) eachRow(ctx context.Context, rows db.Select) error {
	if o.at != nil || o.onVersion == nil {
		return o.s.db.EachRowOf(ctx, rows)
	}
	return o.s.db.EachRowOf(ctx, o.readVersion(new(Version)), rows)
}

// readVersion returns a query that reads the organisation's Version into *v, and calls the function of OnVersion. The query must run before the queries
// of the data.
func (o *Org) readVersion(v *Version) db.Select {
	now := o.s.db.Now()
	return o.s.queries.version.Select(map[string]any{"org": o.id, "now": now, "late": lateCutoff(now)}, func(row *db.Values) error {
		*v = Version{Version: row.Count(0), videos: row.Count(1), stopped: row.Count(2), labels: row.Count(3), Late: row.OptionalInstant(4), Due: row.OptionalInstant(5)}
		if o.onVersion != nil && o.at == nil {
			o.at = new(*v)
			o.onVersion(*v)
		}
		return nil
	})
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
