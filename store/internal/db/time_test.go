package db_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
)

// randomTime returns a random time of the years 1 to 9999 in a random time zone, with nanoseconds.
func randomTime(t *rapid.T) time.Time {
	seconds := rapid.Int64Range(-62_135_596_800, 253_402_300_799).Draw(t, "seconds")
	zone := time.FixedZone("", rapid.IntRange(-12*3600, 14*3600).Draw(t, "zone"))
	return time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone)
}

func TestInstantOf_dropsFractionsOfAMicrosecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		for range 50 {
			at := randomTime(rt)
			i := store.InstantOf(at)
			require.Equal(rt, at.UTC().Truncate(time.Microsecond), i.Time())
			d := time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(rt, "microseconds")) * time.Microsecond
			require.Equal(rt, i.Time().Add(d), i.Add(d).Time())
			require.Equal(rt, d, i.Add(d).Sub(i))
			require.Equal(rt, i.Time().Format(time.DateOnly), i.Day().String())
		}
	})
}

func TestDateOf_returnsTheUTCDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		for range 50 {
			at := randomTime(rt)
			d := store.DateOf(at)
			y, m, day := at.UTC().Date()
			require.Equal(rt, time.Date(y, m, day, 0, 0, 0, 0, time.UTC), d.Time())
			require.Equal(rt, at.UTC().Format(time.DateOnly), d.String())
			again, err := store.ParseDate(d.String())
			require.NoError(rt, err)
			require.Equal(rt, d, again)

			week := d.Week()
			require.Equal(rt, time.Monday, week.Time().Weekday())
			require.LessOrEqual(rt, week, d)
			require.Less(rt, d-week, store.Date(7))
			require.Equal(rt, week, week.Week())

			text, err := d.Value()
			require.NoError(rt, err)
			var scanned store.Date
			for _, stored := range []any{text, []byte(d.String()), d.Time(), d.Time().In(at.Location()).UTC(), d.String() + "T00:00:00Z", d.String() + " 00:00:00+00:00"} {
				require.NoError(rt, scanned.Scan(stored))
				require.Equal(rt, d, scanned, "%T", stored)
			}
		}
	})
}

func TestDate_followsTheCalendarAndRefusesInvalidDays(t *testing.T) {
	t.Parallel()
	at := func(s string) store.Date {
		d, err := store.ParseDate(s)
		require.NoError(t, err)
		return d
	}
	require.Equal(t, store.Date(0), at("1970-01-01"))
	require.Equal(t, store.Date(-1), at("1969-12-31"))
	require.Equal(t, store.Date(-1), store.DateOf(time.Unix(-1, 999_999_999)), "the last nanoseconds before 1970 must belong to the day 1969-12-31")
	require.Equal(t, store.Date(-1), store.InstantOf(time.Unix(0, -1)).Day())
	require.Equal(t, at("2024-03-01"), at("2024-02-29")+1)
	require.Equal(t, at("2023-03-01"), at("2023-02-28")+1)
	require.Equal(t, at("2000-03-01"), at("2000-02-29")+1)
	require.Equal(t, at("1900-03-01"), at("1900-02-28")+1, "no leap year")
	require.Equal(t, at("1969-12-29"), at("1970-01-01").Week())
	require.Equal(t, at("2024-12-30"), at("2025-01-05").Week())
	require.Equal(t, at("2025-01-06"), at("2025-01-06").Week())

	for _, bad := range []string{"", "2023-02-29", "2024-13-01", "2024-1-1", "24-01-01", "2024-01-01T00:00:00Z", "2024-01-01 ", "tomorrow", "２０２４-01-01"} {
		_, err := store.ParseDate(bad)
		require.ErrorContains(t, err, "YYYY-MM-DD", bad)
	}
	var d store.Date
	for _, bad := range []any{nil, 17, int64(17), "yesterday", []byte("2024-02-30")} {
		require.Error(t, d.Scan(bad), "%v", bad)
	}
}
