package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/link"
)

// videosPage is the data for the template of the list of videos.
type videosPage struct {
	View        tableView
	Filter      url.Values // the filters that the query of the page contains
	Videos      []client.Video
	Highest     int64 // highest views of a video on the page; the bars in the table are drawn relative to it
	Platforms   []string
	Statuses    []string
	Collections []client.Collection
	// UnlistedFilter is the text of the present filter by collections if no entry of Collections has this filter. For example, the filter names
	// several collections, or one that the tier hides. Otherwise it is "".
	UnlistedFilter string
	// Similar are accounts whose usernames begin with the filter by account. The page offers them if no video matches its filters.
	Similar []client.Account
}

// UsernameLink returns the URL query of the same list with another filter by account.
func (p videosPage) UsernameLink(username string) string {
	return "?" + withParameters(p.View.query, "username", username, "page", "").Encode()
}

// IsFilterSectionOpen returns true if the section "More filters" of the page is open. It is open if one of its filters is set.
func (p videosPage) IsFilterSectionOpen() bool {
	return slices.ContainsFunc(videoFilters[3:], p.Filter.Has)
}

// videoFilters are query parameters of the page and of the API. The form always shows the first three;
// the others are under "More filters".
var videoFilters = []string{"q", "platform", "fetch_status", "username", "collections", "hashtag", "uploaded_at_start", "uploaded_at_end", "has_metrics", "include_removed"}

// The values of filters, in the order in which the pages show them.
var (
	platformNames = []string{"tiktok", "instagram", "youtube", "facebook"}
	statusNames   = []string{"ok", "pending", "delayed", "failing", "private", "gone", "restricted", "unsupported", "stopped"}
)

func showVideos(v *visit) error {
	content := videosPage{Platforms: platformNames, Statuses: statusNames, Filter: url.Values{}}
	var err error
	if content.View, err = v.tableView("latest_views"); err != nil {
		return err
	}
	query := content.View.Query()
	for _, name := range videoFilters {
		if text := strings.TrimSpace(v.r.URL.Query().Get(name)); text != "" {
			content.Filter.Set(name, text)
		}
	}
	maps.Copy(query, content.Filter)
	if text := query.Get("q"); isLink(text) { // a search for a link finds the video of the link
		query.Del("q")
		query.Set("link", text)
	}
	if content.Filter.Get("fetch_status") == "stopped" {
		query.Set("include_removed", "true")
	}
	if first, last := content.Filter.Get("uploaded_at_start"), content.Filter.Get("uploaded_at_end"); isDay(first) && isDay(last) && first > last {
		if err := v.refuseFilter(&Problem{Status: http.StatusBadRequest, Title: "Invalid filter", Detail: fmt.Sprintf("The first upload day, %s, is after the last, %s.", first, last)}); err != nil {
			return err
		}
	}
	if part := v.csvPart(); part != "" {
		if part != "videos" {
			return v.refuseCSV()
		}
		return v.sendVideos("videos", content.View, "/videos", query)
	}
	var found client.VideoPage
	if v.refused == nil { // the page shows no videos for a refused filter
		if err := v.refuseFilter(v.getFromAPI("/videos", query, &found)); err != nil {
			return err
		}
	}
	content.Videos = found.Data
	content.Highest = highestViews(found.Data)
	content.View.setRowCount(found.Pagination.Total, found.Pagination.TotalPages)
	if v.redirectToLastPage(content.View) {
		return nil
	}
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	if content.UnlistedFilter, err = v.nameUnlistedCollections(content.Filter.Get("collections"), content.Collections); err != nil {
		return err
	}
	if username := content.Filter.Get("username"); username != "" && len(content.Videos) == 0 && v.refused == nil {
		if content.Similar, err = v.findAccounts(username); err != nil {
			return err
		}
		content.Similar = slices.DeleteFunc(content.Similar, func(a client.Account) bool { return a.Username == link.FoldUsername(username) })
	}
	return v.renderPage(http.StatusOK, "videos", "videos", "Videos", content)
}

// nameUnlistedCollections returns the text to show for a filter by collections that is not in the list. For the id of a collection, the text is the
// name of the collection. For several ids, it is the number of collections. Otherwise, it is the filter itself. If the filter is empty or is the id
// of a listed collection, the text is "".
func (v *visit) nameUnlistedCollections(filter string, listed []client.Collection) (string, error) {
	if slices.ContainsFunc(listed, func(c client.Collection) bool { return c.ID.String() == filter }) {
		return "", nil
	}
	if ids := strings.Split(filter, ","); len(ids) > 1 && !slices.ContainsFunc(ids, func(id string) bool { return uuid.Validate(id) != nil }) {
		return plural(len(ids), "collection", "collections"), nil
	}
	id, err := uuid.Parse(filter)
	if err != nil {
		return filter, nil //nolint:nilerr // the filter has a name or several collections
	}
	found, _, err := v.getCollection("/collections/" + id.String())
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusNotFound {
		return filter, nil
	}
	return found.Name, err
}

// isDay returns true if text is a day as YYYY-MM-DD.
func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// highestViews returns the highest known views of the videos, or 0.
func highestViews(videos []client.Video) int64 {
	var highest int64
	for _, video := range videos {
		if video.LatestViews != nil {
			highest = max(highest, *video.LatestViews)
		}
	}
	return highest
}
