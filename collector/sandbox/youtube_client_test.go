package sandbox

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"

	"github.com/reeltally/reeltally/store/link"
)

// officialClient returns Google's Go client for YouTube's API, which sends its requests to the sandbox. If this client can read the
// answers, the sandbox uses YouTube's real format.
func officialClient(t *testing.T, r testServer, key string) *youtube.Service {
	t.Helper()
	endpoint := r.Settings(r.base)["REELTALLY_YOUTUBE_BASE_URL"]
	service, err := youtube.NewService(context.Background(), option.WithEndpoint(endpoint), option.WithAPIKey(key))
	require.NoError(t, err)
	return service
}

func TestGoogleClient_readsVideosFromSandbox(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	service := officialClient(t, r, YouTubeAPIKey)
	ids := []string{"dQw4w9WgXcQ", "jNQXAC9IVRw", r.World().Find(link.YouTube, HiddenLikes), r.World().Find(link.YouTube, AgeRestricted), r.World().Find(link.YouTube, Live)}
	for name, call := range map[string]*youtube.VideosListCall{
		"ids in repeated parameters": service.Videos.List([]string{"snippet", "statistics", "contentDetails", "status"}).Id(ids...),
		"ids separated by commas":    service.Videos.List([]string{"snippet,statistics,contentDetails,status"}).Id(strings.Join(ids, ",")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := call.Do()
			require.NoError(t, err)
			require.Equal(t, "youtube#videoListResponse", list.Kind)
			require.Len(t, list.Items, len(ids))
			require.EqualValues(t, len(ids), list.PageInfo.TotalResults)
			for i, item := range list.Items {
				truth, _ := r.World().Video(link.YouTube, ids[i], testNow)
				require.Equal(t, ids[i], item.Id)
				require.EqualValues(t, truth.Views, item.Statistics.ViewCount)
				require.Equal(t, truth.Title, item.Snippet.Title)
				require.Equal(t, truth.Account.ID, item.Snippet.ChannelId)
				require.Equal(t, truth.Account.Name, item.Snippet.ChannelTitle)
				require.Equal(t, truth.UploadedAt.Format(time.RFC3339), item.Snippet.PublishedAt)
				require.Equal(t, isoDuration(int64(truth.LengthSeconds)), item.ContentDetails.Duration)
				require.Equal(t, "public", item.Status.PrivacyStatus)
				if truth.Likes == nil {
					require.Zero(t, item.Statistics.LikeCount)
				} else {
					require.EqualValues(t, *truth.Likes, item.Statistics.LikeCount)
				}
				if truth.NotSafe {
					require.Equal(t, "ytAgeRestricted", item.ContentDetails.ContentRating.YtRating)
				}
			}
		})
	}
}

func TestGoogleClient_readsVideoCountsFromSandbox(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	list, err := officialClient(t, r, YouTubeAPIKey).Videos.BatchGetStats().Part("id", "snippet", "statistics", "contentDetails").Id("dQw4w9WgXcQ", "jNQXAC9IVRw").Do()
	require.NoError(t, err)
	require.Equal(t, "youtube#batchGetStatsResponse", list.Kind)
	require.Len(t, list.Items, 2)
	truth, _ := r.World().Video(link.YouTube, "jNQXAC9IVRw", testNow)
	require.Equal(t, truth.Views, list.Items[1].Statistics.ViewCount)
	require.Equal(t, truth.UploadedAt.Format(time.RFC3339), list.Items[1].Snippet.PublishTime)
	length, err := time.ParseDuration(list.Items[1].ContentDetails.Duration)
	require.NoError(t, err)
	require.InDelta(t, truth.LengthSeconds, length.Seconds(), 1)
}

func TestGoogleClient_readsChannelsAndUploadsFromSandbox(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	service := officialClient(t, r, YouTubeAPIKey)
	truth, _ := r.World().Account(link.YouTube, "veritasium", testNow)
	channels, err := service.Channels.List([]string{"snippet", "statistics", "contentDetails"}).ForHandle("@Veritasium").Do()
	require.NoError(t, err)
	require.Len(t, channels.Items, 1)
	channel := channels.Items[0]
	require.Equal(t, truth.ID, channel.Id)
	require.Equal(t, "@veritasium", channel.Snippet.CustomUrl)
	require.EqualValues(t, *truth.Followers, channel.Statistics.SubscriberCount)
	require.EqualValues(t, truth.Videos, channel.Statistics.VideoCount)
	require.EqualValues(t, truth.Views, channel.Statistics.ViewCount)
	require.Equal(t, "UU"+channel.Id[2:], channel.ContentDetails.RelatedPlaylists.Uploads)

	byID, err := service.Channels.List([]string{"snippet"}).Id(channel.Id, r.World().accountByNumber(link.YouTube, 77).id).Do()
	require.NoError(t, err)
	require.Len(t, byID.Items, 2)
	byName, err := service.Channels.List([]string{"id"}).ForUsername("veritasium").Do()
	require.NoError(t, err)
	require.Equal(t, channel.Id, byName.Items[0].Id)

	var ids []string
	pages := 0
	err = service.PlaylistItems.List([]string{"contentDetails", "snippet"}).PlaylistId(channel.ContentDetails.RelatedPlaylists.Uploads).MaxResults(7).
		Pages(context.Background(), func(page *youtube.PlaylistItemListResponse) error {
			pages++
			require.Equal(t, truth.Videos, page.PageInfo.TotalResults)
			for _, item := range page.Items {
				require.EqualValues(t, len(ids), item.Snippet.Position)
				require.Equal(t, channel.Id, item.Snippet.VideoOwnerChannelId)
				ids = append(ids, item.ContentDetails.VideoId)
			}
			return nil
		})
	require.NoError(t, err)
	require.Equal(t, r.World().Uploads(link.YouTube, "veritasium", testNow), ids)
	require.Equal(t, (len(ids)+6)/7, pages)
}

func TestGoogleClient_readsErrorsFromSandbox(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	request := func(service *youtube.Service) *googleapi.Error {
		_, err := service.Videos.List([]string{"id"}).Id("dQw4w9WgXcQ").Do()
		var failure *googleapi.Error
		require.ErrorAs(t, err, &failure)
		return failure
	}
	service := officialClient(t, r, YouTubeAPIKey)

	failure := request(officialClient(t, r, "wrong"))
	require.Equal(t, http.StatusBadRequest, failure.Code)
	require.Equal(t, "badRequest", failure.Errors[0].Reason)
	require.Contains(t, failure.Details[0].(map[string]any)["reason"], "API_KEY_INVALID")

	r.setFault(t, `{"source":"youtube","fault":"quota_spent","count":1}`)
	failure = request(service)
	require.Equal(t, http.StatusForbidden, failure.Code)
	require.Equal(t, "quotaExceeded", failure.Errors[0].Reason)

	r.setFault(t, `{"source":"youtube","fault":"rate_limited","count":1,"retry_after":7}`)
	failure = request(service)
	require.Equal(t, http.StatusTooManyRequests, failure.Code)
	require.Equal(t, "rateLimitExceeded", failure.Errors[0].Reason)
	require.Equal(t, "7", failure.Header.Get("Retry-After"))

	r.setFault(t, `{"source":"youtube","fault":"server_error","count":1}`)
	failure = request(service)
	require.Equal(t, http.StatusServiceUnavailable, failure.Code)
	require.Equal(t, "backendError", failure.Errors[0].Reason)

	_, err := service.PlaylistItems.List([]string{"id"}).PlaylistId("UUxxxxxxxxxxxxxxxxxxxxx!").Do()
	require.ErrorAs(t, err, &failure)
	require.Equal(t, http.StatusNotFound, failure.Code)
	require.Equal(t, "playlistNotFound", failure.Errors[0].Reason)
}

func TestGoogleClient_getsStatus304ForKnownETag(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	service := officialClient(t, r, YouTubeAPIKey)
	list, err := service.Videos.List([]string{"statistics"}).Id("dQw4w9WgXcQ").Do()
	require.NoError(t, err)
	_, err = service.Videos.List([]string{"statistics"}).Id("dQw4w9WgXcQ").IfNoneMatch(list.Header.Get("ETag")).Do()
	require.True(t, googleapi.IsNotModified(err))
}

func TestGoogleClient_getsOnlyMembersOfFieldMask(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	list, err := officialClient(t, r, YouTubeAPIKey).Videos.List([]string{"snippet", "statistics"}).Id("dQw4w9WgXcQ").Fields("items(id,statistics/viewCount)").Do()
	require.NoError(t, err)
	require.Empty(t, list.Kind)
	require.Nil(t, list.Items[0].Snippet)
	require.Positive(t, list.Items[0].Statistics.ViewCount)
	require.Zero(t, list.Items[0].Statistics.LikeCount)
}
