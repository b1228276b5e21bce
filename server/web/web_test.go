package web

import (
	"html"
	"image"
	"image/draw"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestReadPasted_findsLinksInPastedText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"https://www.tiktok.com/@a/video/1":                                              {"https://www.tiktok.com/@a/video/1"},
		"https://x.example/a https://x.example/b\r\nhttps://x.example/a":                 {"https://x.example/a", "https://x.example/b"},
		"Look at https://vm.tiktok.com/ZM1/, and (youtu.be/abc?t=1)!":                    {"https://vm.tiktok.com/ZM1/", "youtu.be/abc?t=1"},
		"<a href=\"https://www.instagram.com/reel/C1/\">reel</a>":                        {"https://www.instagram.com/reel/C1/"},
		"1. m.facebook.com/watch?v=12; 2. WWW.YouTube.com/shorts/x":                      {"m.facebook.com/watch?v=12", "WWW.YouTube.com/shorts/x"},
		"title;https://www.youtube.com/watch?v=a&list=b;12":                              {"https://www.youtube.com/watch?v=a&list=b;12"},
		"Hi, here are the links\n\n  instagram.com/name  ":                               {"instagram.com/name"},
		"nonsense\nand/or this, e.g. that":                                               {"nonsense"},
		"one: tiktok,com/@a/video/1 two: vimeo.com/12 and ftp://x.y/z":                   {"vimeo.com/12", "ftp://x.y/z"},
		"https://x.example/a,https://x.example/b;https://x.example/c|HTTP://x.example/d": {"https://x.example/a", "https://x.example/b", "https://x.example/c", "HTTP://x.example/d"},
		"https://x.example/a。https://x.example/b，youtu.be/c；youtu.be/d看":                 {"https://x.example/a", "https://x.example/b", "youtu.be/c", "youtu.be/d看"},
		"https://x.example/ahttps://x.example/b":                                         {"https://x.example/a", "https://x.example/b"},
		"www.tiktok.com/@a/video/1,tiktok.com/@a/video/2;youtu.be/c":                     {"www.tiktok.com/@a/video/1", "tiktok.com/@a/video/2", "youtu.be/c"},
		"https://x.example/login?next=https://www.tiktok.com/@a/video/1&b=2":             {"https://x.example/login?next=https://www.tiktok.com/@a/video/1&b=2"},
		"https://l.facebook.com/l.php?u=https%3A%2F%2Fyoutu.be%2Fa,https://x.example/b":  {"https://l.facebook.com/l.php?u=https%3A%2F%2Fyoutu.be%2Fa", "https://x.example/b"},
		" \n\t\n": nil,
	} {
		require.Equal(t, want, readPasted(text).Links, "%q", text)
	}
}

func TestReadPasted_accountsForEachLine(t *testing.T) {
	t.Parallel()
	got := readPasted("1. https://x.example/a\n\n2. @carlos.runs\r\n3. https://x.example/a,\n  \n<a href='https://x.example/b'>https://x.example/b</a>\nnonsense\nhello world\n!!!\nhttps://x.example/a\nnonsense")
	require.Equal(t, pastedText{Links: []string{"https://x.example/a", "https://x.example/b", "nonsense"},
		Repeated: []string{"https://x.example/a", "https://x.example/a", "nonsense"}, Other: []string{"2. @carlos.runs", "hello world", "!!!"}}, got)
}

func TestEventTexts_describeEachTypeOfEventsThatAWebhookCanChoose(t *testing.T) {
	t.Parallel()
	for _, kind := range store.EventTypes {
		require.Equal(t, kind != store.EventWebhookTest, eventTexts[kind] != "", kind)
	}
}

func TestPeriod_linksToTheLastMonth(t *testing.T) {
	t.Parallel()
	day := func(text string) store.Date {
		at, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return store.DateOf(at)
	}
	for today, want := range map[string]string{
		"2026-11-29": "?end=2026-10-31&metric=views&start=2026-10-01",
		"2026-03-31": "?end=2026-02-28&metric=views&start=2026-02-01",
		"2026-01-01": "?end=2025-12-31&metric=views&start=2025-12-01",
	} {
		p := period{today: day(today), Oldest: day(today) - 90, query: url.Values{"days": {"7"}, "metric": {"views"}}}
		require.Equal(t, want, p.LastMonthLink())
		require.False(t, p.IsLastMonth())
		p.Start, p.End = p.lastMonth()
		require.True(t, p.IsLastMonth())
		p.Oldest = p.Start + 1
		require.Empty(t, p.LastMonthLink(), "the tier does not show the whole month")
	}
}

func TestSecondsToWait_isTheTimeUntilTheNextFetch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 22, 12, 0, 0, 0, time.UTC)
	v := &visit{Pages: &Pages{Options: Options{Now: func() time.Time { return now }}}}
	require.Equal(t, 5, v.secondsToWait(nil))
	for until, want := range map[time.Duration]int{0: 5, 2 * time.Second: 5, 40 * time.Second: 40, 5 * time.Hour: 3600, -30 * time.Second: 5, -10 * time.Minute: 60, -100 * time.Hour: 60} {
		next := now.Add(until)
		require.Equal(t, want, v.secondsToWait(&next), "%s", until)
	}
}

func TestFormatFunctions_roundHalfUpAndReturnDashForNil(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 9_999: "9,999", 10_000: "10.0k", 10_049: "10.0k", 10_050: "10.1k", 99_949: "99.9k", 99_950: "100k", 99_999: "100k", 919_457: "919k", 919_500: "920k", 999_499: "999k", 999_500: "1.00M", 999_999: "1.00M",
		1_000_000: "1.00M", 1_150_000: "1.15M", 16_100: "16.1k", 4_107_057: "4.11M", 1_234_999: "1.23M", 1_235_000: "1.24M", 9_994_999: "9.99M", 9_995_000: "10.0M", 12_390_000: "12.4M", 999_999_999: "1.00B", 1_234_567_890: "1.23B", 999_999_999_999: "1.00T", 1_000_000_000_000: "1.00T",
		999_500_000_000_000: "1,000T", 1_234_567_000_000_000: "1,235T", 1<<53 - 1: "9,007T", -12_390_000: "−12.4M", -999_999: "−1.00M", -5: "−5"} {
		require.Equal(t, want, formatShort(n), n)
	}
	require.Equal(t, "1,234,567,890", formatCount(int64(1_234_567_890)))
	require.Equal(t, "−1,234", formatCount(int64(-1234)))
	require.Equal(t, "+1,234", formatSigned(new(int64(1234))))
	require.Equal(t, "0", formatSigned(new(int64(0))))
	require.Equal(t, "9007199254740991", formatPlain(new(int64(1<<53-1))))
	require.Equal(t, "+12.3 %", formatPercent(new(12.34)))
	require.Equal(t, "−0.5 %", formatPercent(new(-0.5)))
	require.Equal(t, "+0.01 %", formatPercent(new(0.0125)))
	require.Equal(t, "−<0.01 %", formatPercent(new(-0.004)))
	require.Equal(t, "0.0 %", formatPercent(new(0.0)))
	require.Equal(t, "0.07×", formatFactor(new(0.071)))
	require.Equal(t, "999.5×", formatFactor(new(999.5)))
	require.Equal(t, "162,022,035.0×", formatFactor(new(162022035.0)))
	require.Equal(t, "−1,234.5 %", formatPercent(new(-1234.5)))
	require.Equal(t, "12,345.60 %", formatRatio(new(12345.6)))
	for _, show := range []func(number) string{formatCount, formatShort, formatSigned, formatPercent, formatRatio, formatFactor} {
		require.Equal(t, unknown, show((*int64)(nil)))
		require.Equal(t, unknown, show((*float64)(nil)))
		require.Equal(t, unknown, show(nil))
	}
	require.Empty(t, formatPlain((*int64)(nil)))
}

func TestCard_lineHasTheSameThicknessWhereItIsSteep(t *testing.T) {
	t.Parallel()
	const width, height = 400, 300
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(cardBackground), image.Point{}, draw.Src)
	points := []point{{Day: 21, Values: []*int64{new(int64(1000))}}, {Day: 20, Values: []*int64{new(int64(1000))}}, {Day: 19, Values: []*int64{new(int64(0))}}, {Day: 1, Values: []*int64{new(int64(0))}}}
	drawLine(picture, chart{Points: points, Period: period{Start: 1, End: 21}, Metrics: make([]metric, 1)}, picture.Bounds())
	// covered returns how much of a pixel the line covers, from 0 to 1. It compares the red values, which differ most between line and area.
	covered := func(x, y int) float64 {
		red := float64(picture.RGBAAt(x, y).R)
		return max(0, min(1, (float64(cardArea.R)-red)/(float64(cardArea.R)-float64(cardAccent.R))))
	}
	var acrossSteep, acrossFlat float64
	for x := 362; x < 378; x++ { // the line rises between x = 360 and x = 380
		acrossSteep += covered(x, height/2)
	}
	for y := height - 20; y < height; y++ {
		acrossFlat += covered(100, y)
	}
	require.InDelta(t, 5, acrossFlat, 0.5)
	require.InDelta(t, acrossFlat, acrossSteep, 1.5, "the line must not become thin where it is steep")
}

func TestChart_gainIsUnknownIfTheDayBeforeIsMissing(t *testing.T) {
	t.Parallel()
	at := func(day store.Date, views *int64) point { return point{Day: day, Values: []*int64{views}} }
	points := []point{at(10, new(int64(50))), at(9, new(int64(60))), at(7, new(int64(30))), at(6, nil), at(5, new(int64(10))), at(4, new(int64(1)))}
	gains := gainsOf(points, 1)
	require.Equal(t, [][]*int64{{new(int64(-10))}, {nil}, {nil}, {nil}, {new(int64(9))}, {nil}}, gains)
}

func TestFillMissingDays_repeatsTotalsOnDaysWithoutChanges(t *testing.T) {
	t.Parallel()
	values := func(n int64) []*int64 {
		out := make([]*int64, len(overviewMetrics))
		for m := range out {
			out[m] = new(n)
		}
		return out
	}
	filled := fillMissingDays([]point{{Day: 8, Values: values(2)}, {Day: 5, Values: values(1)}}, 9)
	var days []store.Date
	for _, p := range filled {
		days = append(days, p.Day)
	}
	require.Equal(t, []store.Date{9, 8, 7, 6, 5}, days)
	require.Equal(t, int64(2), *filled[0].Values[overviewViews])
	require.Equal(t, int64(1), *filled[2].Values[overviewViews])
	require.Nil(t, filled[0].Values[overviewUploads], "the number of uploads must be unknown on a day without a point")
	require.Nil(t, valueAt(filled, overviewViews, 4), "the value on a day before the first point must be unknown")
}

func TestFillMissingDays_keepsTotalsThatAreUnknown(t *testing.T) {
	t.Parallel()
	values := func(videos, followers *int64) []*int64 {
		out := make([]*int64, len(overviewMetrics))
		out[overviewVideos], out[overviewFollowers] = videos, followers
		return out
	}
	one, five := new(int64(1)), new(int64(5))
	filled := fillMissingDays([]point{{Day: 8, Values: values(one, nil)}, {Day: 6, Values: values(nil, nil)}, {Day: 5, Values: values(one, five)}}, 9)
	var followers []*int64
	for _, p := range filled {
		followers = append(followers, p.Values[overviewFollowers])
	}
	require.Equal(t, []*int64{nil, nil, five, five, five}, followers, "only a day without totals must have the totals of an earlier day")
}

func TestViewGains_sumsTheGainsOfThePeriod(t *testing.T) {
	t.Parallel()
	gains := viewGains{byDay: map[store.Date]*int64{10: nil, 12: new(int64(7)), 15: new(int64(-2)), 20: new(int64(5))}}
	for _, c := range []struct {
		first, last store.Date
		want        *int64
		since       store.Date
		why         string
	}{
		{12, 20, new(int64(10)), 0, "all gains are known"},
		{11, 19, new(int64(5)), 0, "the gain begins directly before the period"},
		{10, 20, new(int64(10)), 10, "the first day has no gain"},
		{1, 15, new(int64(5)), 10, "the period begins before the first day"},
		{16, 19, new(int64(0)), 0, "no day in the period has totals"},
		{21, 30, new(int64(0)), 0, "the last day with totals is before the period"},
		{1, 10, nil, 10, "the first day is the last day of the period"},
		{1, 9, nil, 0, "the period ends before the first day"},
	} {
		got, since := gains.between(c.first, c.last)
		require.Equal(t, c.want, got, c.why)
		require.Equal(t, c.since, since, c.why)
	}
}

func TestOverviewTiles_showNoGainOfUnknownViews(t *testing.T) {
	t.Parallel()
	var points []point
	gains := viewGains{byDay: map[store.Date]*int64{}}
	for day := store.Date(20); day > 10; day-- {
		at := point{Day: day, Values: make([]*int64, len(overviewMetrics))}
		at.Values[overviewVideos] = new(int64(2)) // the day has totals, but the views of no video are known
		points = append(points, at)
		gains.byDay[day] = nil
	}
	delete(gains.byDay, 20) // nothing was fetched today
	tiles := overviewTiles(chart{}, points, gains, period{Start: 16, End: 20, Days: 5, Oldest: 1, today: 20})
	require.Equal(t, "Views", tiles[0].Label)
	require.Nil(t, tiles[0].Value)
	require.Nil(t, tiles[0].Change, "an unknown gain must not be 0")
	require.Nil(t, tiles[0].Before)
	require.Empty(t, tiles[0].Span)
}

func TestGainOfDay_isUnknownIfAllVideosWereAddedOnThisDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		videos, added, gained, want *int64
	}{
		{new(int64(3)), new(int64(3)), new(int64(0)), nil},
		{new(int64(3)), new(int64(2)), new(int64(0)), new(int64(0))},
		{new(int64(0)), new(int64(0)), new(int64(0)), new(int64(0))},
		{nil, nil, nil, nil}, // the tier hides the numbers
	} {
		require.Equal(t, c.want, gainOfDay(&client.CollectionHistoryPoint{Videos: c.videos, VideosAdded: c.added, ViewsGained: c.gained}))
	}
}

func TestFormatTimes_marksTheTimesOfAText(t *testing.T) {
	t.Parallel()
	require.Equal(t, `<b> & the next fetch is due from <time datetime="2026-11-29T03:50:00Z" title="2026-11-29 03:50 UTC" data-clock>2026-11-29 03:50 UTC</time> on.`,
		html.UnescapeString(string(formatTimes(new("<b> & the next fetch is due from 2026-11-29 03:50 UTC on.")))))
	require.NotContains(t, formatTimes("<b> 2026-11-29 03:50 UTC"), "<b>")
	require.EqualValues(t, "2026-99-99 03:50 UTC, 2026-11-29", formatTimes("2026-99-99 03:50 UTC, 2026-11-29"))
	require.Empty(t, formatTimes((*string)(nil)))
}

func TestTreeOf_putsCollectionsBelowTheirParents(t *testing.T) {
	t.Parallel()
	root, child, grandchild, elsewhere := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	tree := collectionTree([]client.Collection{{ID: grandchild, Name: "a", ParentID: &child}, {ID: child, Name: "b", ParentID: &root}, {ID: uuid.New(), Name: "c", ParentID: &elsewhere}, {ID: root, Name: "d"}})
	var names []string
	var levels []int
	for _, b := range tree {
		names, levels = append(names, b.Name), append(levels, b.Level)
	}
	require.Equal(t, []string{"c", "d", "b", "a"}, names)
	require.Equal(t, []int{0, 0, 1, 2}, levels)
}

func TestSparkline_isEmptyWithFewerThanTwoKnownValues(t *testing.T) {
	t.Parallel()
	points := []point{{Day: 3, Values: []*int64{new(int64(10))}}, {Day: 2, Values: []*int64{nil}}, {Day: 1, Values: []*int64{new(int64(0))}}}
	require.Equal(t, "100.0,2.0 0.0,22.0", sparkline(points, 0, 1, 3))
	require.Empty(t, sparkline(points, 0, 2, 3))
	require.Empty(t, sparkline(nil, 0, 1, 3))
}

func TestSafeLink_allowsOnlyWebAddresses(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://a.example/x", safeLink("https://a.example/x"))
	for _, link := range []string{"javascript:alert(1)", "data:text/html,x", "ftp://a", "//a", "", "%"} {
		require.Empty(t, safeLink(link), link)
	}
}

func TestCompareGains_putsUnknownGainsLast(t *testing.T) {
	t.Parallel()
	videos := []client.ReportVideo{{AdLink: "unknown"}, {AdLink: "low", ViewsGained: new(int64(-1))}, {AdLink: "zero", ViewsGained: new(int64(0))}, {AdLink: "high", ViewsGained: new(int64(9))}}
	slices.SortStableFunc(videos, func(a, b client.ReportVideo) int { return store.CompareGains(a.ViewsGained, b.ViewsGained) })
	var order []string
	for _, v := range videos {
		order = append(order, v.AdLink)
	}
	require.Equal(t, []string{"high", "zero", "low", "unknown"}, order)
}

func TestGainWithDays_namesDaysOnlyIfTheGainDoesNotCoverThePeriod(t *testing.T) {
	t.Parallel()
	p := period{Start: 100, End: 110, today: 110}
	of := func(startDay, endDay store.Date, gained *int64) shownGain {
		day := func(d store.Date) *openapi_types.Date {
			if d == 0 {
				return nil
			}
			return &openapi_types.Date{Time: d.Time()}
		}
		return gainWithDays(day(startDay), day(endDay), gained, p)
	}
	text, gained := func(d store.Date) string { return d.String() }, new(int64(5))
	require.Equal(t, shownGain{Views: gained}, of(99, 110, gained))
	require.Equal(t, shownGain{Views: gained}, of(99, 109, gained), "the fetch of today can still be due")
	p.today = 111
	require.Equal(t, shownGain{Views: gained, Until: text(109)}, of(99, 109, gained), "no count of a past day can still come")
	p.today = 0
	require.Equal(t, shownGain{Views: gained, Until: text(109)}, of(99, 109, gained), "a report has no counts from after it was saved")
	p.today = 110
	require.Equal(t, shownGain{Views: gained, Until: text(108)}, of(99, 108, gained))
	require.Equal(t, shownGain{Views: gained, Since: text(101)}, of(100, 110, gained))
	require.Equal(t, shownGain{Views: gained, Since: text(103), Until: text(105)}, of(102, 105, gained))
	require.Equal(t, shownGain{Since: text(103)}, of(102, 102, nil), "an unknown gain has no last day")
	require.Equal(t, shownGain{}, of(0, 0, nil))
	require.Equal(t, shownGain{Views: gained, Since: text(103)}, of(102, 0, gained), "old reports have no last day")
	require.Equal(t, shownGain{Since: text(111)}, of(110, 0, new(int64(0))), "old reports have a gain of 0 if it is unknown")
}

func TestMissingReasons_countsDaysByReason(t *testing.T) {
	t.Parallel()
	day := func(d store.Date) time.Time { return d.Time().Add(13 * time.Hour) }
	fetched := func(d store.Date) *time.Time { at := day(d); return &at }
	known, unknown := []*int64{new(int64(7)), nil}, []*int64{nil, new(int64(7))}
	points := []point{{Day: 106, Values: unknown}, {Day: 105, Values: known}, {Day: 103, Values: known}}
	for want, c := range map[string]chart{
		"": {Points: points[1:2], Missing: missingNumbers{AddedAt: day(105), FetchedAt: fetched(105)}, Period: period{Start: 105, End: 105}},
		"Of the days without a number, 1 was before " + store.Date(103).String() + ", when tracking began, 1 was after the last fetch on " + store.Date(106).String() +
			". Views are unknown on 1 of the days with numbers: nobody counted.": {Points: points, Missing: missingNumbers{AddedAt: day(103), FetchedAt: fetched(106), Unknown: "nobody counted"}, Period: period{Start: 102, End: 107}},
		"Of the days without a number, 3 were before " + store.Date(104).String() + ", when tracking began.": {Points: points[1:2], Missing: missingNumbers{AddedAt: day(104)}, Period: period{Start: 101, End: 107}},
		"Of the days without a number, 2 were before " + store.Date(103).String() + ", when tracking began.": {Missing: missingNumbers{AddedAt: day(103)}, Period: period{Start: 101, End: 107}}, // the time of the last fetch is unknown
		"Of the days without a number, 3 were after the last fetch on " + store.Date(106).String() + ".":     {Missing: missingNumbers{AddedAt: day(103), FetchedAt: fetched(106)}, Period: period{Start: 107, End: 109}},
		"Views are unknown on 1 of the days with numbers: nobody counted. Views are unknown on 1 of the days with numbers: no video of the account was tracked.": {
			Points:  []point{{Day: 107, Values: []*int64{nil, new(int64(0))}}, {Day: 106, Values: unknown}, {Day: 105, Values: known}},
			Missing: missingNumbers{AddedAt: day(103), Unknown: "nobody counted", Videos: 1}, Period: period{Start: 105, End: 107}},
		"Nothing was fetched yet.": {Missing: missingNumbers{AddedAt: day(103), Unfetched: true}, Period: period{Start: 101, End: 107}},
	} {
		c.Quality, c.Metrics = true, videoMetrics
		require.Equal(t, want, c.MissingReasons())
		c.Masked = true
		require.Empty(t, c.MissingReasons(), "hidden numbers must have no reasons")
	}
}

func TestProvenance_countsDaysByQuality(t *testing.T) {
	t.Parallel()
	c := chart{Quality: true, Period: period{Days: 30}}
	for quality, n := range map[string]int{"measured": 20, "interpolated": 3, "corrected": 1, "rounded": 2} {
		for range n {
			c.Points = append(c.Points, point{Quality: quality})
		}
	}
	require.Equal(t, "Of the 30 days in the period, 23 were measured, 3 were calculated from the fetches before and after, 1 was lower than before, "+
		"2 were rounded by the source, 4 were without a number.", c.Provenance())
	c.Quality = false
	require.Empty(t, c.Provenance())
}

func TestFormatLength_returnsShortText(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[string]string{"7.662": "7.7 s", "15.000": "15 s", "59.96": "1:00 min", "65.4": "1:05 min", "3599.6": "1:00:00 h", "0": "0 s", "long": "long"} {
		require.Equal(t, want, formatLength(seconds))
	}
}

func TestChart_saysWhyItIsEmpty(t *testing.T) {
	t.Parallel()
	known, unknown := []*int64{new(int64(7)), nil}, []*int64{nil, nil}
	point1, point2 := point{Values: known, Gains: unknown}, point{Values: unknown, Gains: unknown}
	for want, charts := range map[string][]chart{
		"":                                     {{Points: []point{point2, point1}}, {Points: []point{point1}, Compared: true, Metric: 1}},
		"There are no numbers in this period.": {{}, {Points: []point{point2}}, {Points: []point{point1}, Metric: 1}, {Points: []point{point2}, Compared: true, Gain: true}},
		"The organisation's tier hides the numbers.": {{Points: []point{point2}, Masked: true}, {Masked: true, Joined: true}},
		"The collection had no videos in this period. A video counts from the day on which it is added, unless you choose another day.": {{Joined: true, Gain: true}},
		"No change is known in this period. A change of a day needs the numbers of this day and of the day before.":                     {{Points: []point{point1}, Gain: true}, {Gain: true}},
	} {
		for _, c := range charts {
			c.Metrics = videoMetrics
			require.Equal(t, want, c.EmptyReason())
		}
	}
	require.Empty(t, chart{Metrics: collectionMetrics, Points: []point{point1}, Gain: true}.EmptyReason(), "a metric that is already per day has no separate gain")
}

func TestCard_saysWhichVideosANumberLacksOrIncludes(t *testing.T) {
	t.Parallel()
	draws := func(tiles ...tile) []byte {
		picture, err := drawCard(sharePage{Title: "Launch", Tiles: tiles})
		require.NoError(t, err)
		return picture
	}
	videos, likes := tile{Label: "Videos", Value: new(int64(11)), Plain: true}, tile{Label: "Likes", Value: new(int64(17)), Plain: true}
	stopped, partial := videos, likes
	stopped.Stopped, partial.Unknown = new(int64(1)), new(int64(10))
	require.Equal(t, "1 no longer tracked", stopped.Note())
	require.Equal(t, "unknown for 10 videos", partial.Note())
	without := draws(videos, likes)
	require.NotEqual(t, without, draws(stopped, likes))
	require.NotEqual(t, without, draws(videos, partial))

	gain := tile{Label: "Gained views", Value: new(int64(17)), Plain: true, Gain: true}
	require.Equal(t, "Gained views in 7 days", gain.LabelWithPeriod(7))
	require.Equal(t, "Likes", likes.LabelWithPeriod(7))
	week, err := drawCard(sharePage{Title: "Launch", Tiles: []tile{videos, gain}, Period: period{Days: 7}})
	require.NoError(t, err)
	require.NotEqual(t, draws(videos, gain), week, "the picture must name the period of a gain")

	none := tile{Stopped: new(int64(0)), Unknown: new(int64(0)), Plain: true}
	require.Empty(t, none.Note())
	gained := tile{Percent: new(1.5), Unknown: new(int64(10)), Plain: true}
	require.Equal(t, "unknown for 10 videos", gained.Note())
}
