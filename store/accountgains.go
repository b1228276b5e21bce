package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// AccountGains returns up to n tracked videos of an account, those that gained the most views from the day "from" to the day "to" first. The gain of a
// video begins with its views on the day before the period, or with its first known views. Videos whose gain is unknown are left out. Only the
// fields ID and StartDay to Gained are set. If the account has too many videos for the days of the period, the error is a *LimitError: the
// limits are those of CollectionTotals. If the account is unknown, the result is empty.
func (o *Org) AccountGains(ctx context.Context, account uuid.UUID, from, to db.Date, n int) ([]CollectionVideo, error) {
	q := CollectionTotalsQuery{From: from, To: min(to, o.s.db.Now().Day())}
	if q.To < q.From {
		return nil, nil
	}
	version, err := o.Version(ctx)
	if err != nil {
		return nil, err
	}
	key := totalsKey{org: o.id, account: account, version: version.Version, query: q}
	c, ok := o.s.totals.get(key)
	if !ok {
		allowed := min(MaxTotalsVideos, MaxTotalsVideoDays/int(q.To-q.From+1))
		videos := o.scopedQuery(ctx, "videos").Select("videos.id, videos.latest_views IS NOT NULL").
			Where("videos.linked_account_id = ? AND NOT videos.removed", account).Order("videos.id").Limit(allowed + 1)
		err := o.s.db.EachRow(ctx, videos, func(row *db.Values) error {
			c.Videos = append(c.Videos, CollectionVideo{ID: row.ID(0), counted: countSet{row.IsTrue(1)}})
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(c.Videos) > allowed {
			return nil, limitError(LimitTotals, "the account has more than %d videos; for this period, the views of at most %[1]d videos can be compared", allowed)
		}
		if err := o.tallyVideos(ctx, q, newTally(q), c.Videos); err != nil {
			return nil, err
		}
		o.s.totals.put(key, c)
	}
	return c.RankByGain(true, n), nil
}
