package web

import (
	"math"
	"net/url"
	"slices"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// maxUploads is the maximum number of videos in the diagram of an account's latest uploads.
const maxUploads = 200

// The size of the diagram of uploads, in SVG units. The dots for the videos are above the bars for the weeks.
const (
	uploadsWidth   = 640.0
	dotsHeight     = 160.0
	columnsTop     = 172.0
	columnsHeight  = 36.0
	uploadsPadding = 8.0 // space around the dots, so that no dot is cut off
)

// uploads is a diagram of when an account uploaded its videos, and how many views they have. It has a dot for each video, and a bar for
// each week.
type uploads struct {
	Dots        []uploadDot
	Columns     []uploadColumn
	First, Last store.Date // days of the oldest and the newest upload
	Low, High   int64      // the lowest and the highest views of the videos in the diagram
	P10, P90    *int64     // a tenth of the videos have at most P10 views, and a tenth have at least P90 views; nil for fewer than ten videos
	Median      float64    // y coordinate of the line that marks the median of the views
	Most        int        // number of uploads in the week with the most uploads
	Days        int        // number of days with an upload
}

// uploadDot is the dot for a video. X is the position of the upload day, and Y the position of the views on a logarithmic scale.
type uploadDot struct {
	X, Y  float64
	Video *client.Video
	High  bool // true if the video has at least ten times the median views
}

// uploadColumn is a vertical bar of the diagram. Its height shows the number of uploads in one week.
type uploadColumn struct {
	X, Y, Width, Height float64
	Week                store.Date // first day of the week, a Monday
	Uploads             int
}

// latestUploads reads the latest tracked uploads of an account, at most maxUploads.
func (v *visit) latestUploads(id string) (client.AccountVideoPage, error) {
	var found client.AccountVideoPage
	query := url.Values{"paginated": {"true"}, "limit": {formatPlain(maxUploads)}, "order_by": {"uploaded_at"}}
	err := v.getFromAPI("/accounts/"+id+"/videos", query, &found)
	return found, err
}

func diagramOfUploads(videos []client.Video) *uploads {
	var known []*client.Video
	var views []int64
	byWeek, days := map[store.Date]int{}, map[store.Date]bool{}
	for n := range videos {
		video := &videos[n]
		if video.UploadedAt == nil || video.LatestViews == nil {
			continue
		}
		known, views = append(known, video), append(views, *video.LatestViews)
		uploaded := uploadDay(video)
		byWeek[uploaded.Week()]++
		days[uploaded] = true
	}
	if len(known) < 3 {
		return nil
	}
	slices.SortFunc(known, func(a, b *client.Video) int { return int(uploadDay(a) - uploadDay(b)) })
	slices.Sort(views)
	u := &uploads{
		First: uploadDay(known[0]), Last: uploadDay(known[len(known)-1]), Low: views[0], High: views[len(views)-1], Days: len(days),
	}
	if tenth := len(views) / 10; tenth > 0 {
		u.P10, u.P90 = &views[tenth-1], &views[len(views)-tenth]
	}
	from, until := u.First.Week(), u.Last.Week()+7
	x := func(day store.Date) float64 {
		return uploadsPadding + (uploadsWidth-2*uploadsPadding)*float64(day-from)/float64(until-from)
	}
	y := func(views float64) float64 {
		low, high := math.Log1p(float64(u.Low)), math.Log1p(float64(u.High))
		if low == high {
			return dotsHeight / 2
		}
		return dotsHeight - uploadsPadding - (dotsHeight-2*uploadsPadding)*(math.Log1p(views)-low)/(high-low)
	}
	median := float64(views[(len(views)-1)/2]+views[len(views)/2]) / 2
	u.Median = y(median)
	for _, video := range known {
		u.Dots = append(u.Dots, uploadDot{x(uploadDay(video)), y(float64(*video.LatestViews)), video, median > 0 && float64(*video.LatestViews) >= 10*median})
	}
	for _, n := range byWeek {
		u.Most = max(u.Most, n)
	}
	for week := from; week < until; week += 7 {
		if n := byWeek[week]; n > 0 {
			height := columnsHeight * float64(n) / float64(u.Most)
			u.Columns = append(u.Columns, uploadColumn{x(week), columnsTop + columnsHeight - height, 0.8 * (x(week+7) - x(week)), height, week, n})
		}
	}
	return u
}

func uploadDay(video *client.Video) store.Date { return store.DateOf(video.UploadedAt.Time) }
