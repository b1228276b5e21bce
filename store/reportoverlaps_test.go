package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store/internal/db"
)

func TestCountOverlaps_countsVideosThatGainedViewsOnTheSameDay(t *testing.T) {
	t.Parallel()
	drawReport := func(t *rapid.T, label string) []CollectionVideo {
		videos := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) CollectionVideo {
			v := CollectionVideo{ID: uuid.UUID{15: rapid.Byte().Draw(t, "id") % 20}}
			if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
				start := db.Date(20_000 + rapid.Int32Range(0, 6).Draw(t, "start"))
				end := start + db.Date(rapid.Int32Range(0, 4).Draw(t, "days"))
				v.StartDay, v.EndDay = &start, &end
				if gained := rapid.Int64Range(-1, 5).Draw(t, "gained"); start < end || gained != 0 {
					v.Gained = &gained
				}
				if rapid.Bool().Draw(t, "frozen") {
					v.FrozenViews, v.FrozenDay = new(int64(1)), start-db.Date(rapid.Int32Range(0, 3).Draw(t, "earlier"))
				}
			}
			return v
		}), 15, 20, func(v CollectionVideo) uuid.UUID { return v.ID }).Draw(t, label)
		slices.SortFunc(videos, func(a, b CollectionVideo) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		return videos
	}
	days := func(v CollectionVideo) (days []db.Date) {
		if v.Gained == nil || *v.Gained == 0 {
			return nil
		}
		start := *v.StartDay
		if v.FrozenViews != nil {
			start = v.FrozenDay
		}
		if start == *v.EndDay {
			return []db.Date{*v.EndDay}
		}
		for day := start + 1; day <= *v.EndDay; day++ {
			days = append(days, day)
		}
		return days
	}
	rapid.Check(t, func(t *rapid.T) {
		one, two := drawReport(t, "one"), drawReport(t, "two")
		for _, reports := range [][2][]CollectionVideo{{one, two}, {two, one}} {
			var want, wantGained int64
			for _, a := range reports[0] {
				for _, b := range reports[1] {
					if a.ID == b.ID && slices.ContainsFunc(days(a), func(d db.Date) bool { return slices.Contains(days(b), d) }) {
						want++
						wantGained += *a.Gained
					}
				}
			}
			encoded, from := encodeGainedDays(reports[1])
			count, gained := countOverlaps(reports[0], encoded)
			require.Equal(t, []int64{want, wantGained}, []int64{count, gained})
			var all []db.Date
			for _, b := range reports[1] {
				all = append(all, days(b)...)
			}
			if len(all) == 0 {
				require.Nil(t, from)
			} else {
				require.Equal(t, slices.Min(all), *from)
			}
		}
	})
}
