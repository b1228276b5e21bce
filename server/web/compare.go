package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
)

// maxCompared is the maximum number of videos in a comparison.
const maxCompared = 5

// comparePage is the data for the template of the page that compares videos.
type comparePage struct {
	Videos       []comparedVideo
	Chart        chart
	Max          int
	Link         string        // link that the visitor wants to add and that was refused; "" otherwise
	HiddenFields []hiddenField // hidden inputs of the form that adds a video: all query parameters of the page except "link" and "notice"
}

// comparedVideo is a video in a comparison.
type comparedVideo struct {
	client.Video
	Remove string // query of a link that removes this video from the comparison
}

// showComparison shows the views of up to five videos in one chart. Each line is scaled so that its
// highest value is 100.
func showComparison(v *visit) error {
	p, err := v.period()
	if err != nil {
		return err
	}
	content := comparePage{Max: maxCompared}
	query := v.r.URL.Query()
	chosen, err := comparedIDs(query)
	if err != nil {
		return err
	}
	if len(chosen) > maxCompared {
		if err := v.refuseFilter(&Problem{Status: http.StatusBadRequest, Title: "Too many videos",
			Detail: fmt.Sprintf("You chose %d videos; a comparison has at most %d. The first %d are shown.", len(chosen), maxCompared, maxCompared)}); err != nil {
			return err
		}
		chosen = chosen[:maxCompared]
	}
	if text := strings.TrimSpace(query.Get("link")); text != "" {
		var found client.VideoPage
		err := v.getFromAPI("/videos", url.Values{"link": {text}, "limit": {"1"}}, &found)
		query.Del("link")
		if err == nil && len(found.Data) > 0 {
			query.Add("video", found.Data[0].AdID.String())
			v.redirectTo("/compare?" + query.Encode())
			return nil
		}
		if err == nil {
			err = &Problem{Status: http.StatusBadRequest, Title: "Not tracked", Detail: "Your organisation does not track the video " + strconv.Quote(text) + "."}
		}
		if err := v.refuseFilter(err); err != nil {
			return err
		}
		content.Link = text
	}
	days := map[store.Date]*point{}
	var metrics []metric
	var csvNames []string
	for n, id := range chosen {
		var video client.Video
		var history client.VideoHistory
		if err := v.getFromAPI("/videos/"+id, nil, &video); err != nil {
			return err
		}
		if err := v.getFromAPI("/videos/"+id+"/history", v.historyQuery(p), &history); err != nil {
			return err
		}
		without := withParameters(query)
		without["video"] = slices.Delete(slices.Clone(chosen), n, n+1)
		content.Videos = append(content.Videos, comparedVideo{video, "?" + without.Encode()})
		metrics = append(metrics, metric{Name: fmt.Sprintf("video-%d", n+1), Label: titleOf(video)})
		csvNames = append(csvNames, formula.Escape(video.AdLink))
		for _, h := range history {
			day := store.DateOf(h.Date.Time)
			if days[day] == nil {
				days[day] = &point{Day: day, Values: make([]*int64, len(chosen)), Computed: make([]bool, len(chosen))}
			}
			days[day].Values[n] = h.Views
			days[day].Computed[n] = h.Views != nil && h.Interpolated != nil && *h.Interpolated
		}
	}
	points := make([]point, 0, len(days))
	for _, at := range days {
		points = append(points, *at)
	}
	slices.SortFunc(points, func(a, b point) int { return int(b.Day - a.Day) })
	if len(chosen) > 0 {
		content.Chart = v.newChart("Each line is scaled: 100 is the highest value of the video in the period. The table has the views themselves. Days are UTC.", p, metrics, pointsForPeriod(points, p))
		content.Chart.Compared, content.Chart.CSVNames = true, csvNames
		if v.csvPart() != "" {
			return v.sendHistory("comparison", content.Chart)
		}
	}
	content.HiddenFields = hiddenFields(withParameters(query, "link", ""))
	return v.renderPage(http.StatusOK, "compare", "videos", "Compare videos", content)
}

// comparedIDs returns the ids of videos in the query, without duplicates. It returns a *Problem if a value is not an id.
func comparedIDs(query url.Values) ([]string, error) {
	var chosen []string
	for _, text := range query["video"] {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, &Problem{Status: http.StatusBadRequest, Title: "Not an id", Detail: fmt.Sprintf("video is %q; it must be the id of a video.", text)}
		}
		if !slices.Contains(chosen, id.String()) {
			chosen = append(chosen, id.String())
		}
	}
	return chosen, nil
}
