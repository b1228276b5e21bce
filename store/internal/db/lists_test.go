package db_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// listRow has a field for each type of value that a list can pass to a statement.
type listRow struct {
	Place    int
	ID       uuid.UUID
	Account  *uuid.UUID
	Platform link.Platform
	Title    *string
	Lane     queue.Lane
	Views    *int64
	Increase *float64
	Day      *store.Date
	At       *store.Instant
	Removed  bool
}

func TestWithRows_passesEveryValueUnchanged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		rows := []listRow{
			{ID: store.NewID(), Platform: link.TikTok},
			{ID: uuid.Nil, Account: new(store.NewID()), Platform: link.YouTube, Title: new(`<b>"it's" \ {1,2},[NULL] & 日本語 🎬` + "\n\t\u2028"), Lane: queue.LaneFree,
				Views: new(int64(math.MaxInt64)), Increase: new(math.MaxFloat64), Day: new(store.Date(-25567)), At: new(store.Instant(math.MinInt64)), Removed: true},
			{ID: uuid.Max, Platform: link.Facebook, Title: new(""), Views: new(int64(math.MinInt64)), Increase: new(-math.SmallestNonzeroFloat64), Day: new(store.Date(2932896)), At: new(store.Instant(0))},
			{ID: store.NewID(), Platform: link.Instagram, Title: new("NULL"), Views: new(int64(0)), Increase: new(1.0)},
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			rows = append(rows, listRow{ID: store.NewID(), Increase: new(float64(random.Int64N(1e9)) / float64(1+random.Int64N(1e6)) * 100)})
		}
		values := make([][]any, len(rows))
		for i := range rows {
			r := &rows[i]
			r.Place = i
			values[i] = []any{r.Place, r.ID, r.Account, r.Platform, r.Title, r.Lane, r.Views, r.Increase, r.Day, r.At, r.Removed}
		}
		tx := d.Store.DB().Read(t.Context())
		list, args := db.WithRows(tx, "u", []string{"place integer", "id uuid", "account uuid", "platform text", "title text", "lane integer", "views bigint",
			"increase double precision", "day date", "at bigint", "removed boolean"}, values)
		var got []listRow
		require.NoError(t, tx.Raw(list+"SELECT * FROM u ORDER BY place", args...).Scan(&got).Error)
		require.Equal(t, rows, got)
	})
}

func TestWithRows_returnsAnEmptyListForNoRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tx := d.Store.DB().Read(t.Context())
		list, args := db.Keys(nil).WithClause(tx)
		var n int
		require.NoError(t, tx.Raw(list+"SELECT COUNT(*) FROM wanted", args...).Scan(&n).Error)
		require.Zero(t, n)
	})
}
