package sandbox

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store/link"
)

// serveYouTubeChannels answers channels.list.
func (s *Sandbox) serveYouTubeChannels(c *call, q youtubeRequest) reply {
	filter, bad := findFilter(q.values, "id", "forHandle", "forUsername", "managedByMe", "mine", "mySubscribers", "categoryId")
	if bad != nil {
		return *bad
	}
	var found []identity
	add := func(i identity, ok bool) {
		if ok {
			found = append(found, i)
		}
	}
	switch filter {
	case "id":
		for _, id := range q.ids {
			add(s.world.accountByID(link.YouTube, id))
		}
	case "forHandle", "forUsername":
		name := q.values.Get(filter)
		c.ids = append(c.ids, name)
		if filter == "forHandle" || !strings.HasPrefix(name, "@") {
			add(s.world.accountByHandle(link.YouTube, name))
		}
	case "categoryId":
		return googleError(http.StatusNotFound, "The category identified in the request cannot be found.", "categoryNotFound", "youtube.channel", "categoryId", "parameter", "")
	default:
		return googleError(http.StatusUnauthorized, "Login Required.", "authError", "global", "Authorization", "header", "UNAUTHENTICATED")
	}
	items := []object{}
	for _, i := range found {
		if t := s.world.accountData(i, c.now); t.State == Public {
			items = append(items, youtubeChannel(t, q))
		}
	}
	body := object{"kind": "youtube#channelListResponse", "pageInfo": object{"totalResults": len(items), "resultsPerPage": 5}}
	if len(items) > 0 { // if channels.list finds no channel, its answer has no member "items"
		body["items"] = items
		body["pageInfo"].(object)["resultsPerPage"] = max(5, len(items))
	}
	return reply{status: http.StatusOK, body: body}
}

// youtubeChannel returns an account as an item of channels.list.
func youtubeChannel(t AccountTruth, q youtubeRequest) object {
	item := object{"kind": "youtube#channel", "id": t.ID}
	if q.wantsPart("snippet") {
		snippet := object{
			"title": t.Name, "description": t.Bio, "publishedAt": t.JoinedAt.Format(time.RFC3339), "country": "US",
			"thumbnails": object{"default": object{"url": "https://yt3.ggpht.com/" + t.ID + "=s88-c-k-c0x00ffffff-no-rj", "width": 88, "height": 88}},
			"localized":  object{"title": t.Name, "description": t.Bio},
		}
		if t.Category != AccountNoHandle {
			snippet["customUrl"] = "@" + t.Handle
		}
		item["snippet"] = snippet
	}
	if q.wantsPart("contentDetails") {
		item["contentDetails"] = object{"relatedPlaylists": object{"likes": "", "uploads": "UU" + strings.TrimPrefix(t.ID, "UC")}}
	}
	if q.wantsPart("statistics") {
		statistics := object{"viewCount": decimalText(t.Views), "hiddenSubscriberCount": t.Followers == nil, "videoCount": decimalText(t.Videos)}
		if t.Followers != nil {
			statistics["subscriberCount"] = decimalText(*t.Followers)
		}
		item["statistics"] = statistics
	}
	if q.wantsPart("status") {
		item["status"] = object{"privacyStatus": "public", "isLinked": true, "longUploadsStatus": "longUploadsUnspecified", "madeForKids": false}
	}
	if q.wantsPart("brandingSettings") {
		item["brandingSettings"] = object{"channel": object{"title": t.Name, "description": t.Bio, "country": "US"}}
	}
	if q.wantsPart("topicDetails") {
		item["topicDetails"] = object{"topicCategories": []string{}}
	}
	item["etag"] = etag(item)
	return item
}

// serveYouTubePlaylistItems answers playlistItems.list. The only playlists are the channels' lists of uploads.
func (s *Sandbox) serveYouTubePlaylistItems(c *call, q youtubeRequest) reply {
	filter, bad := findFilter(q.values, "id", "playlistId")
	if bad != nil {
		return *bad
	}
	playlist := q.values.Get("playlistId")
	if filter == "playlistId" {
		c.ids = append(c.ids, playlist)
	}
	switch playlist {
	case "WL", "HL", "LL": // ids of playlists that only their owner can read, such as "Watch later"
		return googleError(http.StatusForbidden, "The request is not properly authorized to retrieve the requested playlist items.", "playlistItemsNotAccessible", "youtube.playlistItem", "", "", "")
	}
	suffix, isUploads := strings.CutPrefix(playlist, "UU")
	owner, ok := s.world.accountByID(link.YouTube, "UC"+suffix)
	var ids []string
	if ok && isUploads && s.world.accountData(owner, c.now).State == Public {
		ids = s.world.listedVideos(owner, c.now)
	}
	if len(ids) == 0 { // a channel without videos has no list of uploads
		return googleError(http.StatusNotFound, "The playlist identified with the request's <code>playlistId</code> parameter cannot be found.",
			"playlistNotFound", "youtube.playlistItem", "playlistId", "parameter", "")
	}
	size := 5
	if given := q.values.Get("maxResults"); given != "" {
		size, _ = strconv.Atoi(given) // Atoi cannot fail: checkRequest has validated the number
	}
	start := 0
	if token := q.values.Get("pageToken"); token != "" {
		var forward bool
		if start, forward, ok = readPageToken(token); !ok || start > len(ids) {
			return youtubeInvalidRequest("invalidPageToken", "The request specifies an invalid page token.", "pageToken", "parameter")
		}
		if !forward {
			start = max(start-size, 0)
		}
	}
	total := len(ids)
	if only := q.values.Get("videoId"); only != "" {
		start = 0
		if ids = slices.DeleteFunc(ids, func(id string) bool { return id != only }); len(ids) == 0 {
			size = 0
		}
		total = len(ids)
	}
	end := min(start+size, len(ids))
	items := []object{}
	for index := start; index < end; index++ {
		items = append(items, s.youtubePlaylistItem(ids[index], playlist, index, c.now, q))
	}
	body := object{
		"kind": "youtube#playlistItemListResponse", "items": items,
		"pageInfo": object{"totalResults": total, "resultsPerPage": size},
	}
	if end < len(ids) && size > 0 {
		body["nextPageToken"] = pageToken(end, true)
	}
	if start > 0 {
		body["prevPageToken"] = pageToken(start, false)
	}
	return reply{status: http.StatusOK, body: body}
}

// youtubePlaylistItem returns a video as an item of playlistItems.list.
func (s *Sandbox) youtubePlaylistItem(id, playlist string, index int, at time.Time, q youtubeRequest) object {
	t, _ := s.world.Video(link.YouTube, id, at)
	published := t.UploadedAt.Format(time.RFC3339)
	item := object{"kind": "youtube#playlistItem", "id": base64.RawURLEncoding.EncodeToString([]byte(playlist + "." + id))}
	if q.wantsPart("contentDetails") {
		item["contentDetails"] = object{"videoId": id, "videoPublishedAt": published}
	}
	if q.wantsPart("snippet") {
		item["snippet"] = object{
			"publishedAt": published, "channelId": t.Account.ID, "title": t.Title, "description": t.Title, "thumbnails": youtubeThumbnails(id),
			"channelTitle": t.Account.Name, "playlistId": playlist, "position": index, "resourceId": object{"kind": "youtube#video", "videoId": id},
			"videoOwnerChannelTitle": t.Account.Name, "videoOwnerChannelId": t.Account.ID,
		}
	}
	if q.wantsPart("status") {
		item["status"] = object{"privacyStatus": "public"}
	}
	item["etag"] = etag(item)
	return item
}

// pageToken returns YouTube's token for a page: the page that begins at the offset if `forward` is true, or the
// page that ends before the offset.
func pageToken(offset int, forward bool) string {
	// YouTube's page tokens are base64 texts of a protocol buffer.
	inner := binary.AppendUvarint([]byte{0x08}, uint64(offset))
	text := "PT:" + base64.RawStdEncoding.EncodeToString(inner)
	back := byte(1)
	if forward {
		back = 0
	}
	outer := append([]byte{0x10, back, 0x1a, byte(len(text))}, text...)
	return base64.RawURLEncoding.EncodeToString(outer)
}

// readPageToken returns the offset and the direction in a token from pageToken. It returns false if the token is not valid.
func readPageToken(token string) (offset int, forward, ok bool) {
	outer, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(outer) < 8 {
		return 0, false, false
	}
	text, isPage := strings.CutPrefix(string(outer[4:]), "PT:")
	inner, err := base64.RawStdEncoding.DecodeString(text)
	if !isPage || err != nil || len(inner) < 2 {
		return 0, false, false
	}
	n, width := binary.Uvarint(inner[1:])
	if width <= 0 || n > 1<<20 {
		return 0, false, false
	}
	offset, forward = int(n), outer[1] == 0
	// The token is valid only if pageToken creates exactly this token from the decoded offset and direction.
	return offset, forward, pageToken(offset, forward) == token
}
