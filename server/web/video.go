package web

import (
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// videoPage is the data for the template of the page of a video.
type videoPage struct {
	Video       client.Video
	Median      *float64 // median of the views of the account's tracked videos; the outlier multiplier is the video's views divided by this median
	Tiles       []tile
	Chart       chart
	Newest      *client.VideoHistoryPoint // the newest history point that is not interpolated; nil if the period does not end today, or has no such point
	Collections []client.Collection       // collections to which the video can be added
	Wait        int                       // number of seconds after which the page reloads itself; 0 if the page does not wait for new numbers
}

var videoMetrics = []metric{{"views", "Views", false}, {"likes", "Likes", false}, {"comments", "Comments", false}, {"shares", "Shares", false}, {"bookmarks", "Bookmarks", false}}

// notGiven is the reason for a count that is unknown although other counts were fetched.
const notGiven = "the source did not give them, or the platform hid them"

// showVideo shows a video with its history.
func showVideo(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	p, err := v.period()
	if err != nil {
		return err
	}
	var content videoPage
	if err := v.getFromAPI("/videos/"+id, nil, &content.Video); err != nil {
		return err
	}
	if string(content.Video.Platform) != v.r.PathValue("platform") {
		return errNotFound
	}
	var history client.VideoHistory
	if err := v.getFromAPI("/videos/"+id+"/history", v.historyQuery(p), &history); err != nil {
		return err
	}
	points := make([]point, len(history))
	for n, h := range history {
		points[n] = point{Day: store.DateOf(h.Date.Time), Values: []*int64{h.Views, h.Likes, h.Comments, h.Shares, h.Bookmarks}, Quality: textOrEmpty(h.Quality), Source: textOrEmpty(h.Source), Fetched: h.FetchedAt}
		if content.Newest == nil && h.Source != nil && p.End == p.today { // a period in the past does not have the newest point
			content.Newest = &history[n]
		}
	}
	video := &content.Video
	content.Chart = v.newChart("", p, videoMetrics, pointsForPeriod(points, p))
	content.Chart.Quality = true
	content.Chart.Missing = missingNumbers{AddedAt: video.CreatedAt, Unfetched: video.LatestUpdatedAt == nil, FetchedAt: video.LatestUpdatedAt, Unknown: notGiven}
	if v.csvPart() != "" {
		return v.sendHistory("video-history", content.Chart)
	}
	content.Tiles = metricTiles(content.Chart, points, p, []*int64{video.LatestViews, video.LatestLikes, video.LatestComments, video.LatestShares, video.LatestBookmarks})
	content.explainUnknownCounts()
	if outlierMultiplier(video) != nil && video.LinkedAccountID != nil {
		var account client.Account
		if err := v.getFromAPI("/accounts/"+video.LinkedAccountID.String(), nil, &account); err != nil {
			return err
		}
		content.Median = account.MedianViews
	}
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	if video.FetchStatus == client.FetchStatusPending || v.awaitsNumbers(video.LatestUpdatedAt) {
		content.Wait = v.secondsToWait(video.NextFetchAt)
	}
	return v.renderPage(http.StatusOK, "video", "videos", titleOf(*video), content)
}

// explainUnknownCounts sets the reason of each tile whose number is unknown although the video was fetched: the source of the newest point does not give
// this count, or the platform hides it. HiddenStats does not say which counts are hidden. If p.Newest is nil, no reason is set.
func (p *videoPage) explainUnknownCounts() {
	if p.Newest == nil {
		return
	}
	reason := "not given by " + *p.Newest.Source
	if p.Video.HiddenStats {
		reason += ", or hidden by the platform"
	}
	for m := range p.Tiles {
		if p.Tiles[m].Value == nil {
			p.Tiles[m].Reason = reason
		}
	}
}

// changeVideo performs the action of a button on the page of a video, and shows the page again.
func changeVideo(v *visit) error {
	return v.changeItem("video", func(path string) (any, error) {
		var video client.Video
		err := v.getFromAPI(path, nil, &video)
		return client.TrackVideoRequest{Link: video.AdLink}, err
	})
}

// changeAccount performs the action of a button on the page of an account, and shows the page again.
func changeAccount(v *visit) error {
	return v.changeItem("account", func(path string) (any, error) {
		var account client.Account
		err := v.getFromAPI(path, nil, &account)
		return client.TrackAccountRequest{Link: account.AccountLink, TrackingType: (*client.TrackingType)(account.TrackingType)}, err // without a type, the API would change the type to latest_30
	})
}

// changeItem performs the action of a button on the page of an item. kind is "video" or "account".
// trackRequest reads the item, and returns the body of the request that tracks it again.
func (v *visit) changeItem(kind string, trackRequest func(path string) (any, error)) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	list := "/" + kind + "s"
	var notice string
	switch v.r.PathValue("action") {
	case "refresh":
		notice, err = v.requestRefresh("/refresh"+list, id)
	case "stop":
		notice = "stopped"
		_, err = v.callAPI(APIRequest{Method: http.MethodDelete, Target: list + "/" + id}, nil)
	case "track":
		notice = "tracked"
		var request any
		if request, err = trackRequest(list + "/" + id); err == nil {
			_, err = v.sendJSON(http.MethodPost, list, request, nil)
		}
	case "collect":
		var added addition
		added, err = v.addToCollection(kind, []string{id})
		notice = added.notice("added")
		if len(added.IDs) == 0 {
			notice = "added-before"
		}
	default:
		return errNotFound
	}
	if err != nil {
		return err
	}
	v.redirectTo("/" + kind + "/" + url.PathEscape(v.r.PathValue("platform")) + "/" + id + "?notice=" + notice)
	return nil
}

// requestRefresh asks the API for an immediate fetch. It returns the value of the query parameter
// "notice", which tells the visitor the result.
func (v *visit) requestRefresh(operationPath, id string) (notice string, err error) {
	status, err := v.sendJSON(http.MethodPost, operationPath, client.RefreshVideoRequest{Link: id}, nil)
	if status == http.StatusAccepted {
		return refreshScheduled, err
	}
	return "refresh-not-due", err
}

// Age returns how many days ago the video was uploaded, or -1 if the upload day is not known.
func (p videoPage) Age() int {
	if p.Video.UploadedAt == nil {
		return -1
	}
	return int(p.Chart.Period.Today() - store.DateOf(p.Video.UploadedAt.Time))
}

// LongTitle returns the caption of the video if it can be too long for the heading of the page, which shows at most three lines. Otherwise it
// returns "".
func (p videoPage) LongTitle() string {
	if title := titleOf(p.Video); utf8.RuneCountInString(title) > 80 {
		return title
	}
	return ""
}

// HasHighViews returns true if the video has at least five times the median views of its account's videos.
func (p videoPage) HasHighViews() bool {
	multiplier := p.Multiplier()
	return multiplier != nil && *multiplier >= 5
}

// Multiplier returns the outlier multiplier of the video, or nil if it is unknown or if the video is no longer tracked.
func (p videoPage) Multiplier() *float64 { return outlierMultiplier(&p.Video) }

// FetchedAt returns when p.Newest was fetched, or nil if p.Newest is nil.
func (p videoPage) FetchedAt() *time.Time {
	if p.Newest == nil {
		return nil
	}
	return p.Newest.FetchedAt
}
