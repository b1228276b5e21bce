package store

import (
	"context"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// accountGainsPointsSQL is the query collectionTotalsPoints for up to @limit tracked videos of an account.
var accountGainsPointsSQL = strings.Replace(collectionTotalsPointsSQL, "v.id IN @ids",
	"v.id IN (SELECT va.id FROM videos va WHERE va.organisation_id = @org AND va.linked_account_id = @account AND NOT va.removed ORDER BY va.id LIMIT @limit)", 1)

// AccountGains returns up to n tracked videos of an account, those that gained the most views from the day "from" to the day "to" first. The gain of a
// video begins with its views on the day before the period, or with its first known views. Videos whose gain is unknown are left out. Only the
// fields ID and StartDay to Gained are set. If the account has too many videos for the days of the period, the error is a *TooManyVideosError: the
// limits are those of CollectionTotals. If the account is unknown, the result is empty.
func (o *Org) AccountGains(ctx context.Context, account uuid.UUID, from, to db.Date, n int) ([]CollectionVideo, error) {
	q := CollectionTotalsQuery{From: from, To: min(to, o.s.db.Now().Day())}
	if q.To < q.From {
		return nil, nil
	}
	version, err := o.version(ctx)
	if err != nil {
		return nil, err
	}
	key := totalsKey{org: o.id, account: account, version: version.Version, query: q}
	c, ok := o.s.totals.get(key)
	if !ok {
		allowed := min(MaxTotalsVideos, MaxTotalsVideoDays/int(q.To-q.From+1))
		t := newTally(q)
		_, err := o.eachVideoWithPoints(ctx, accountGainsPointsSQL, map[string]any{"account": account, "limit": allowed + 1}, q.From-1, q.To, math.MaxInt, func(video uuid.UUID, of []Point) {
			v := CollectionVideo{ID: video}
			t.addVideo(&v, of)
			c.Videos = append(c.Videos, v)
		})
		if err != nil {
			return nil, err
		}
		if len(c.Videos) > allowed {
			return nil, &TooManyVideosError{Limit: allowed}
		}
		o.s.totals.put(key, c)
	}
	return c.RankByGain(true, n), nil
}
