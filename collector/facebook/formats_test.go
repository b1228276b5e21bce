package facebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
)

func TestSource_returnsCountsIfAnOptionalMemberHasAnUnexpectedType(t *testing.T) {
	t.Parallel()
	for replaced, by := range map[string]string{
		`"title":"Reel"`:                   `"title":7`,
		`"description":"Big pancakes 🥞"`:   `"description":["Big pancakes"]`,
		`58.433`:                           `{}`,
		`"2026-10-03T17:04:11+0000"`:       `1759511051`,
		`"/reel/` + pancakes + `/"`:        `{"href":"/reel/"}`,
		`"from":{"id":"` + mira + `"`:      `"from":{"id":["` + mira + `"]`,
		`"name":"Mira Cooks"`:              `"name":false`,
		`"from":{`:                         `"from":"` + mira + `","x":{`,
		`"views":1482337`:                  `"views":"1482337"`,
		`"length":58.433`:                  `"length":"fifty"`,
		`"created_time":"2026-10-03T17:04`: `"created_time":null,"x":"2026-10-03T17:04`,
	} {
		body := strings.Replace(reel, replaced, by, 1)
		require.NotEqual(t, reel, body, replaced)
		w := newGraphTest(t, nil, map[string]string{videoRequest: body, handleRequest: `{"id":"` + mira + `","username":"mira"}`})
		r, err := w.fetch(t, videoTarget(pancakes))
		require.NoError(t, err)
		require.Equal(t, source.OK, r.Class, "%s: %s", by, r.Detail)
		require.Equal(t, []int64{1482337, 90211, 1204}, []int64{*r.Facts.Views, *r.Facts.Likes, *r.Facts.Comments}, by)
	}
	w := newGraphTest(t, nil, map[string]string{videoRequest: strings.Replace(reel, "58.433", `"58.43"`, 1)})
	r, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Equal(t, new(58.43), r.Facts.LengthSeconds, "Facebook also sends the length as a text")
}

func TestSource_returnsFollowersIfAnOptionalMemberOfAPageHasAnUnexpectedType(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, nil, map[string]string{mira + " id,name,username,about,website,followers_count": `{"id":"` + mira + `","name":{},"username":null,"about":["x"],"website":3,"followers_count":77}`,
		mira + "/videos id,created_time,from": `{"data":[{"id":"` + pancakes + `","created_time":1759511051,"from":"` + mira + `"}]}`})
	target := accountTarget(mira, 1)
	target.AccountID = mira
	r, err := w.fetch(t, target)
	require.NoError(t, err)
	require.Equal(t, source.OK, r.Class, r.Detail)
	require.Equal(t, new(int64(77)), r.Account.Followers)
	require.Len(t, r.Account.Videos, 1)
}

func TestSource_usesTheLifetimeRowOfAMetric(t *testing.T) {
	t.Parallel()
	row := func(period, value string) string {
		return `{"name":"fb_reels_total_plays",` + period + `"values":[{"value":` + value + `}]}`
	}
	const lifetime, day = `"period":"lifetime",`, `"period":"day",`
	for rows, views := range map[string]*int64{
		row(lifetime, "5000") + "," + row(day, "0"):   new(int64(5000)),
		row(day, "0") + "," + row(lifetime, "5000"):   new(int64(5000)),
		row("", "5000") + "," + row(lifetime, "4000"): new(int64(5000)),
		row(day, "3"): nil,
	} {
		w := newGraphTest(t, []string{mira}, map[string]string{videoRequest: reel, insightsRequest: `{"data":[` + rows + `]}`})
		target := videoTarget(pancakes)
		target.NeedDetails = false
		r, err := w.fetch(t, target)
		require.NoError(t, err)
		require.Equal(t, views, r.Facts.Views, rows)
	}
}

func TestSource_returnsUnsupportedForAnObjectOfAnotherType(t *testing.T) {
	t.Parallel()
	const page = mira + " id,name,username,about,website,followers_count"
	for nodeType, isVideo := range map[string]bool{"Photo": false, "Post": false, "Video": true} {
		w := newGraphTest(t, nil, map[string]string{videoRequest: graphError(100, 0, "(#100) Tried accessing nonexisting field (length) on node type ("+nodeType+")")})
		r, err := w.fetch(t, videoTarget(pancakes))
		if isVideo {
			var f *source.Failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, source.BadRequest, f.Class, "a field that videos lack is a wrong request")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, source.Unsupported, r.Class, nodeType)
	}
	w := newGraphTest(t, nil, map[string]string{page: graphError(100, 0, "(#100) Tried accessing nonexisting field (followers_count) on node type (User)")})
	target := accountTarget(mira, 1)
	target.AccountID = mira
	r, err := w.fetch(t, target)
	require.NoError(t, err)
	require.Equal(t, source.Unsupported, r.Class)
}
