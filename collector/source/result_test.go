package source_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
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

func TestFetchEach_returnsAnswersReceivedBeforeFailure(t *testing.T) {
	t.Parallel()
	batch := []queue.Target{{ExternalID: "a"}, {ExternalID: "b"}, {ExternalID: "c"}}
	limit := &source.Failure{Class: source.RateLimited, Detail: "limit"}
	failing := func(at string, with error) func(context.Context, queue.Target) (source.Result, error) {
		return func(_ context.Context, t queue.Target) (source.Result, error) {
			if t.ExternalID == at {
				return source.Result{}, with
			}
			return source.Result{Class: source.Missing}, nil
		}
	}
	results, err := source.FetchEach(t.Context(), batch, failing("b", limit))
	require.NoError(t, err)
	require.Equal(t, []source.Result{
		{Target: batch[0], Class: source.Missing},
		{Target: batch[1], Class: source.Temporary, Detail: "a call of the batch failed: rate_limited: limit", Failed: limit},
		{Target: batch[2], Class: source.Temporary, Detail: "a call of the batch failed: rate_limited: limit", Failed: limit},
	}, results)
	late := errors.New("the deadline passed before the call began")
	results, err = source.FetchEach(t.Context(), batch, failing("b", late))
	require.NoError(t, err)
	require.ErrorIs(t, results[1].Failed, late, "a target without an answer must have a failure, so that its result does not count as an answer")
	_, err = source.FetchEach(t.Context(), batch, failing("a", limit))
	require.Equal(t, limit, err)
	_, err = source.FetchEach(t.Context(), batch, failing("c", errors.Join(context.Canceled)))
	require.ErrorIs(t, err, context.Canceled)
}
