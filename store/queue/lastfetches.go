package queue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// LastFetchWindow is how long ago a successful fetch may be to count in LastFetches.Succeeded. By default, each target is fetched about once a day.
const LastFetchWindow = 24 * time.Hour

// maxReasonTargets is the maximum number of failed targets whose reasons LastFetches compares. It limits the memory that the query needs.
const maxReasonTargets = 10_000

// explainedStatuses are the fetch statuses that explain why a fetch gave no numbers: a source has answered that the target is private, restricted or gone,
// or no source can fetch the target. Targets with these statuses do not count as failed.
var explainedStatuses = []FetchStatus{FetchPrivate, FetchRestricted, FetchGone, FetchUnsupported}

// LastFetches counts the targets of one platform that one source fetches, by the result of their last fetch. The database has no result of earlier
// fetches.
type LastFetches struct {
	Platform      link.Platform `gorm:"column:source" json:"platform"`
	Source        string        `gorm:"column:route" json:"source"` // name of the source that is called next for the targets
	Succeeded     int64         `json:"succeeded"`                  // number of targets whose last fetch succeeded within LastFetchWindow
	Failed        int64         `json:"failed"`                     // number of targets whose last fetch failed, unless a source answered that the target is private, restricted or gone
	Reason        string        `json:"reason"`                     // most common reason of the failed fetches, of which at most maxReasonTargets are compared; "" if there is none. It contains no credential.
	ReasonTargets int64         `json:"reason_targets"`             // number of compared targets with this reason
}

// Total returns the number of targets whose last fetch is counted.
func (f LastFetches) Total() int64 { return f.Succeeded + f.Failed }

// LastFetches counts the targets of all sources by the result of their last fetch, sorted by platform and source. It reads the whole queue,
// so callers should keep the result for a while.
func (s *Queue) LastFetches(ctx context.Context) ([]LastFetches, error) {
	fetches := []LastFetches{}
	// SQLite reads only the index fetch_targets_counts. It does not sort, because the index has the order of these groups.
	var groups []LastFetches
	err := s.db.Read(ctx).Raw(`SELECT source, route, COUNT(CASE WHEN attempts = 0 AND fetched_at >= ? THEN 1 END) AS succeeded,
 COUNT(CASE WHEN attempts > 0 AND status NOT IN ? THEN 1 END) AS failed
 FROM fetch_targets WHERE bucket = ? AND route <> '' GROUP BY source, kind, lane, state, status, route`, s.db.Now().Add(-LastFetchWindow), explainedStatuses, Bucket).Scan(&groups).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	for _, g := range groups {
		n := slices.IndexFunc(fetches, func(f LastFetches) bool { return f.Platform == g.Platform && f.Source == g.Source })
		switch {
		case n >= 0:
			fetches[n].Succeeded, fetches[n].Failed = fetches[n].Succeeded+g.Succeeded, fetches[n].Failed+g.Failed
		case g.Total() > 0:
			fetches = append(fetches, g)
		}
	}
	slices.SortFunc(fetches, func(a, b LastFetches) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Source, b.Source))
	})
	if !slices.ContainsFunc(fetches, func(f LastFetches) bool { return f.Failed > 0 }) {
		return fetches, nil
	}
	var reasons []LastFetches
	err = s.db.Read(ctx).Raw(`SELECT source, route, detail AS reason, COUNT(*) AS reason_targets FROM
 (SELECT source, route, detail FROM fetch_targets WHERE bucket = ? AND route <> '' AND attempts > 0 AND status NOT IN ? AND detail <> '' LIMIT ?) AS failed
 GROUP BY source, route, detail ORDER BY COUNT(*) DESC, detail`, Bucket, explainedStatuses, maxReasonTargets).Scan(&reasons).Error
	for i := range fetches {
		f := &fetches[i]
		n := slices.IndexFunc(reasons, func(r LastFetches) bool { return r.Platform == f.Platform && r.Source == f.Source })
		if n >= 0 {
			f.Reason, f.ReasonTargets = reasons[n].Reason, reasons[n].ReasonTargets
		}
	}
	return fetches, db.Translate(err)
}
