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

func TestAddOverlaps_addsVideosWhoseViewsOfTheSameDayAreCounted(t *testing.T) {
	t.Parallel()
	drawReport := func(t *rapid.T, label string) []CollectionVideo {
		videos := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) CollectionVideo {
			v := CollectionVideo{ID: uuid.UUID{15: rapid.Byte().Draw(t, "id") % 20}}
			if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
				start := db.Date(20_000 + rapid.Int32Range(0, 6).Draw(t, "start"))
				end := start + db.Date(rapid.Int32Range(0, 4).Draw(t, "days"))
				v.StartDay, v.EndDay = &start, &end
				if start < end {
					v.Gained = new(rapid.Int64Range(-1, 5).Draw(t, "gained"))
				}
				if rapid.Bool().Draw(t, "frozen") {
					v.Gained = new(rapid.Int64Range(-1, 5).Draw(t, "gained since the continued report"))
					v.FrozenViews, v.FrozenDay = new(int64(1)), start-db.Date(rapid.Int32Range(0, 3).Draw(t, "earlier"))
					v.LateFrozenDay = rapid.Bool().Draw(t, "late")
				} else if rapid.Bool().Draw(t, "uploaded") {
					v.Details.UploadedAt = new(db.Date(20_000 + rapid.Int32Range(0, 6).Draw(t, "upload")))
				}
				v.StartViews = new(rapid.Int64Range(0, 3).Draw(t, "views at the start"))
			}
			return v
		}), 15, 20, func(v CollectionVideo) uuid.UUID { return v.ID }).Draw(t, label)
		slices.SortFunc(videos, func(a, b CollectionVideo) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		return videos
	}
	report := Report{StartDate: 20_002, EndDate: 20_004}
	atStart := func(v CollectionVideo) int64 {
		if v.Details.UploadedAt == nil || *v.Details.UploadedAt < report.StartDate || *v.Details.UploadedAt > report.EndDate || *v.StartDay < report.StartDate {
			return 0
		}
		return *v.StartViews
	}
	gainOf := func(v CollectionVideo) int64 {
		if v.Gained == nil {
			return 0
		}
		return *v.Gained
	}
	days := func(v CollectionVideo) (days []db.Date) {
		if v.StartDay == nil || gainOf(v) == 0 && atStart(v) == 0 {
			return nil
		}
		first := *v.StartDay + 1
		switch {
		case v.FrozenViews != nil && (v.LateFrozenDay || v.FrozenDay == *v.EndDay):
			first = v.FrozenDay
		case v.FrozenViews != nil:
			first = v.FrozenDay + 1
		case atStart(v) > 0:
			first = *v.StartDay
		}
		for day := first; day <= *v.EndDay; day++ {
			days = append(days, day)
		}
		return days
	}
	rapid.Check(t, func(t *rapid.T) {
		one, two := drawReport(t, "one"), drawReport(t, "two")
		for _, reports := range [][2][]CollectionVideo{{one, two}, {two, one}} {
			var want ReportOverlap
			for _, a := range reports[0] {
				for _, b := range reports[1] {
					if a.ID == b.ID && slices.ContainsFunc(days(a), func(d db.Date) bool { return slices.Contains(days(b), d) }) {
						want.Videos++
						want.ViewsGained += gainOf(a)
						want.ViewsAtStart += atStart(a)
					}
				}
			}
			encoded, from := report.encodeGainedDays(reports[1])
			var got ReportOverlap
			report.addOverlaps(&got, reports[0], encoded)
			require.Equal(t, want, got)
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
