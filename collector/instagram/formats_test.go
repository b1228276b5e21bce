package instagram_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
)

func TestSource_returnsCountsIfAnOptionalMemberHasAnUnexpectedType(t *testing.T) {
	t.Parallel()
	for replaced, by := range map[string]string{
		`"caption":"Big pancakes 🥞"`:                         `"caption":["Big pancakes"]`,
		`"https://www.instagram.com/reel/` + pancakes + `/"`: `{"href":"/reel/"}`,
		`"2026-10-03T17:04:11+0000"`:                         `1759511051`,
		`"name":"Mira Cooks"`:                                `"name":7,"biography":[]`,
	} {
		answer := discoveryAnswer(mira+`,"followers_count":77`, mediaList("", postJSON(pancakes, reel)))
		changed := strings.Replace(answer, replaced, by, 1)
		require.NotEqual(t, answer, changed, replaced)
		w := newGraphTest(t, func(string, string) (int, string) { return 200, changed })
		r := w.fetch(t, videoTarget(pancakes, "mira.cooks"))[0]
		require.Equal(t, source.OK, r.Class, "%s: %s", by, r.Detail)
		require.Equal(t, []int64{1482337, 90211, 1204}, []int64{*r.Facts.Views, *r.Facts.Likes, *r.Facts.Comments}, by)
		r = w.fetch(t, accountTarget("mira.cooks", 1))[0]
		require.Equal(t, source.OK, r.Class, "%s: %s", by, r.Detail)
		require.Equal(t, new(int64(77)), r.Account.Followers)
		require.Len(t, r.Account.Videos, 1)
	}
}

func TestSource_requestsSmallerPagesIfAPageHasTooMuchData(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, func(_, fields string) (int, string) {
		if !strings.Contains(fields, ".limit(12)") {
			return 500, graphError(1, 0, "Please reduce the amount of data you're asking for, then retry your request")
		}
		return 200, discoveryAnswer(mira, mediaList("", postJSON(pancakes, reel)))
	})
	require.Equal(t, source.OK, w.fetch(t, videoTarget(pancakes, "mira.cooks"))[0].Class)
	require.Len(t, *w.requests, 4, "the own profile, and pages of 50, 25 and 12 posts")
	r := w.fetch(t, accountTarget("mira.cooks", 1))[0]
	require.Equal(t, source.OK, r.Class)
	require.Len(t, r.Account.Videos, 1)
	require.Len(t, *w.requests, 5, "the size of the page is cached")
}
