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
