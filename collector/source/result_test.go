package source_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
)

func TestAddResult_refusesDifferentItemsWithOneID(t *testing.T) {
	t.Parallel()
	video := func(views int64) source.Result {
		return source.Result{Class: source.OK, Facts: &source.Facts{Views: &views, Title: new("soup")}}
	}
	account := func(followers int64) source.Result {
		return source.Result{Class: source.OK, Account: &source.AccountFacts{Followers: &followers}}
	}
	gone := source.Result{Class: source.Gone}
	different := source.Result{Class: source.Temporary, Detail: "the answer has two different items for this id"}
	for name, tt := range map[string]struct {
		items []source.Result
		want  source.Result
	}{
		"one item":                             {[]source.Result{video(1000)}, video(1000)},
		"two equal items":                      {[]source.Result{video(1000), video(1000)}, video(1000)},
		"two different items":                  {[]source.Result{video(1000), video(7777)}, different},
		"a third item that equals the first":   {[]source.Result{video(1000), video(7777), video(1000)}, different},
		"a third item that differs from two":   {[]source.Result{video(1000), video(1000), video(7777)}, different},
		"an item with facts and a deleted one": {[]source.Result{video(1000), gone}, different},
		"two equal accounts":                   {[]source.Result{account(5), account(5)}, account(5)},
		"two different accounts":               {[]source.Result{account(5), account(6)}, different},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := map[string]source.Result{"other": gone}
			for _, r := range tt.items {
				source.AddResult(results, "id", r)
			}
			require.Equal(t, map[string]source.Result{"other": gone, "id": tt.want}, results)
		})
	}
}
