package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestDescribeJoined_namesOnlyTheShownMetrics(t *testing.T) {
	t.Parallel()
	const views = " Views per day leave out the views that a video already had when it was added."
	shown, likes, comments := metric{Name: "views", Label: "Views"}, metric{Name: "likes", Label: "Likes"}, metric{Name: "comments", Label: "Comments"}
	require.Equal(t, " Gained views and v"+views[2:]+" Engagements per day include those that a video already had when it was added.", describeJoined(collectionMetrics))
	require.Equal(t, views, describeJoined([]metric{shown}))
	require.Equal(t, " Likes per day include those that a video already had when it was added.", describeJoined([]metric{likes}))
	require.Equal(t, views+" Likes and comments per day include those that a video already had when it was added.", describeJoined([]metric{likes, shown, comments}))
}

func TestReasonNotCompared_saysWhyAndOnlyIfThereIsNoComparison(t *testing.T) {
	t.Parallel()
	known, none := &store.PreviousPeriod{Gained: new(int64(7)), Counted: 2}, &store.PreviousPeriod{}
	for _, test := range []struct {
		want     string
		videos   int64
		gained   *int64
		oldest   store.Date
		previous *store.PreviousPeriod
	}{
		{"", 2, new(int64(9)), 41, known},
		{"", 2, nil, 41, known},
		{"", 0, nil, 50, nil},
		{"not compared: the tier does not show all of the 30 days before", 2, new(int64(9)), 42, nil},
		{"not compared: too many videos for 2 × 30 days", 2584, new(int64(9)), 41, none},
		{"not compared: no video counted yet when the 30 days before began", 2583, new(int64(9)), 41, none},
		{"not compared: the gain of the 30 days before is unknown", 2, new(int64(9)), 41, &store.PreviousPeriod{Counted: 2}},
	} {
		p := period{Start: 71, End: 100, Days: 30, Oldest: test.oldest}
		require.Equal(t, test.want, reasonNotCompared(client.ReportStatistics{Videos: &test.videos, ViewsGained: test.gained}, p, test.previous), "%+v", test)
	}
}
