package fetchstatus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/queue"
)

// Requirements in docs/coverage.md: 11.1-01
func TestStatusChangeDuringPause_isNilForShortOrStoredPause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	require.Nil(t, StatusChangeDuringPause(queue.Target{}, "youtube", now.Add(29*time.Minute), source.QuotaSpent, "paused", now))
	until := now.Add(18 * time.Hour)
	for class, reason := range map[source.Class]string{
		source.QuotaSpent:  "YouTube currently gets no requests, because its budget is spent",
		source.RateLimited: "YouTube currently gets no requests, because it limits the number of requests",
		source.AuthFailed:  "YouTube currently gets no requests, because it does not accept the operator's credential",
		source.Temporary:   "YouTube currently gets no requests, because requests to it failed",
	} {
		change := StatusChangeDuringPause(queue.Target{}, "youtube", until, class, "paused", now)
		require.Equal(t, &queue.FetchChange{Status: queue.FetchDelayed, Reason: reason, NextAt: store.InstantOf(until)}, change)
	}
	require.Nil(t, StatusChangeDuringPause(queue.Target{Detail: "paused"}, "youtube", until, source.QuotaSpent, "paused", now), "a pause must not be stored twice")
	require.NotNil(t, StatusChangeDuringPause(queue.Target{}, "youtube", now.Add(time.Minute), source.AuthFailed, "paused", now), "a refused credential must be named immediately")
}

// Requirements in docs/coverage.md: 11.1-02
func TestFailureReason_namesTheSourceAndNotTheError(t *testing.T) {
	t.Parallel()
	require.Equal(t, "The last attempt failed, because YouTube gave no usable answer", failureReason(source.Temporary, sourceTitle("youtube"), 1))
	require.Equal(t, "The last 3 attempts failed, because the vendor apify did not accept the operator's credential", failureReason(source.AuthFailed, sourceTitle("vendor:apify"), 3))
	require.Equal(t, "The last 2 attempts failed, because TikTok rejected the request", failureReason(source.BadRequest, sourceTitle("tiktok-research"), 2))
}

// limitedSource is a source that serves every target, but fetches only some accounts and their videos.
type limitedSource struct {
	source.Source
	accounts    string
	needsHandle bool
}

func (limitedSource) Serves(queue.Target) (int, bool) { return 1, true }
func (s limitedSource) OnlyAccounts() string          { return s.accounts }
func (s limitedSource) NeedsHandle(t queue.Target) bool {
	return s.needsHandle && t.Kind == queue.KindVideo
}

func TestUnsupportedReason_saysWhichAccountsTheSourcesFetch(t *testing.T) {
	t.Parallel()
	instagram, own, all := limitedSource{accounts: "professional accounts", needsHandle: true}, limitedSource{accounts: "accounts of the operator"}, limitedSource{}
	for name, tt := range map[string]struct {
		sources []source.Source
		target  queue.Target
		want    string
	}{
		"personal account": {[]source.Source{instagram}, queue.Target{Kind: queue.KindAccount, Handle: "mira"},
			"The configured sources give numbers only of professional accounts and their videos, and this account is not one of these"},
		"two sources": {[]source.Source{own, instagram}, queue.Target{Kind: queue.KindAccount},
			"The configured sources give numbers only of accounts of the operator, professional accounts and their videos, and this account is not one of these"},
		"a source without limits": {[]source.Source{own, all}, queue.Target{Kind: queue.KindVideo}, "No configured source returns metrics of this video"},
		"no source":               {nil, queue.Target{Kind: queue.KindVideo}, "No configured source can fetch this video"},
		"video that is not in the list of its account": {[]source.Source{instagram}, queue.Target{Kind: queue.KindVideo, Handle: "mira"},
			"The configured sources find a video only in the list of its account's newest posts, and it is not there"},
		"video of an unknown account": {[]source.Source{instagram}, queue.Target{Kind: queue.KindVideo},
			"The link does not contain the account, which the configured sources need to find the video; track a link that contains the account, or track the account"},
	} {
		require.Equal(t, tt.want, unsupportedReason(tt.sources, tt.target), name)
	}
}
