package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/internal/words"
)

// displaySettings say what the share page of a collection or report shows. openapi.yaml describes the members.
type displaySettings struct {
	Title        string   `json:"title"`
	Description  string   `json:"description"`
	Theme        string   `json:"theme"` // colour scheme: "light", "dark" or "auto"
	Metrics      []string `json:"metrics"`
	ShowAccounts bool     `json:"show_accounts"`
	ShowCaptions bool     `json:"show_captions"` // only for reports: the share page of a collection always shows the captions
	ShowHistory  bool     `json:"show_history"`
	Sort         struct {
		By        string `json:"by"`
		Direction string `json:"direction"`
	} `json:"sort"`
}

// settingsOf decodes the display settings of a collection or report and adds defaults. settingsJSON is a JSON
// object, or nil if no settings are stored.
func settingsOf(settingsJSON *string, defaultTitle string) (displaySettings, error) {
	d := displaySettings{ShowHistory: true}
	if settingsJSON != nil {
		if err := json.Unmarshal([]byte(*settingsJSON), &d); err != nil {
			return d, err
		}
	}
	if d.Title == "" {
		d.Title = defaultTitle
	}
	if len(d.Metrics) == 0 {
		d.Metrics = []string{"views", "likes", "comments"}
	}
	if d.Sort.By == "" {
		d.Sort.By = "latest_views"
	}
	return d, nil
}

// describe returns what visitors of the share page see, for example "the videos, views, likes and a chart of the days".
func (d displaySettings) describe() string {
	shown, hasChart := []string{"the videos"}, false
	for _, m := range d.metrics() {
		shown = append(shown, strings.ToLower(m.Label))
		hasChart = hasChart || d.ShowHistory && m.currentSum != nil
	}
	if hasChart {
		shown = append(shown, "a chart of the days")
	}
	if d.ShowAccounts {
		shown = append(shown, "the accounts")
	}
	return words.JoinWithAnd(shown)
}

// describeReport returns what visitors of the share page of a report see, and what they do not see. hasNames is false for an older report, which has
// no captions and no accounts.
func (d displaySettings) describeReport(hasNames bool) (shown, hidden string) {
	see, notSee := []string{"the period", "the sums", "the videos with their links"}, []string{}
	for _, part := range []struct {
		name  string
		shown bool
	}{{"chart of the days", d.ShowHistory}, {"captions", d.ShowCaptions && hasNames}, {"accounts", d.ShowAccounts && hasNames}} {
		switch {
		case !part.shown:
			notSee = append(notSee, "no "+part.name)
		case part.name == "chart of the days":
			see = append(see, "a "+part.name)
		default:
			see = append(see, "the "+part.name)
		}
	}
	return words.JoinWithAnd(see), words.JoinWithAnd(append(notSee, "nothing else of your organisation"))
}

// formValues returns the values of the fields that the share forms of collections and reports have in common.
func (d displaySettings) formValues() url.Values {
	return url.Values{"title": {d.Title}, "description": {d.Description}, "theme": {d.Theme}, "show_history": {strconv.FormatBool(d.ShowHistory)},
		"show_accounts": {strconv.FormatBool(d.ShowAccounts)}, "show_captions": {strconv.FormatBool(d.ShowCaptions)}}
}

// shareMetric is a metric that a share page can show: a column of its table of videos.
type shareMetric struct {
	videoColumn
	// The functions currentSum and sumOfDay return the sum of the metric over the videos of the collection. currentSum also returns
	// in how many videos the metric is unknown. Both functions are nil for a metric that cannot be added up.
	currentSum func(*client.ReportStatistics) (sum, unknownCount *int64)
	sumOfDay   func(*client.CollectionHistoryPoint) *int64
}

// shareSums maps the name of a metric to two functions, currentSum and sumOfDay. Both return a sum of the metric. Metrics that have no sum are
// not in the map.
var shareSums = map[string]shareMetric{
	"views": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) { return s.Views, s.UnknownViews },
		sumOfDay:   func(d *client.CollectionHistoryPoint) *int64 { return d.Views },
	},
	"likes": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) { return s.Likes, s.UnknownLikes },
		sumOfDay:   func(d *client.CollectionHistoryPoint) *int64 { return d.Likes },
	},
	"comments": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) { return s.Comments, s.UnknownComments },
		sumOfDay:   func(d *client.CollectionHistoryPoint) *int64 { return d.Comments },
	},
	"bookmarks": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) {
			return s.Bookmarks, s.UnknownBookmarks
		},
		sumOfDay: func(d *client.CollectionHistoryPoint) *int64 { return d.Bookmarks },
	},
	"shares": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) { return s.Shares, s.UnknownShares },
		sumOfDay:   func(d *client.CollectionHistoryPoint) *int64 { return d.Shares },
	},
	"engagement": {
		currentSum: func(s *client.ReportStatistics) (sum, unknownCount *int64) {
			return s.Engagements, s.UnknownEngagements
		},
		sumOfDay: func(d *client.CollectionHistoryPoint) *int64 { return d.Engagements },
	},
}

// shareMetricNames are the metrics that a share page can show, as openapi.yaml lists them.
var shareMetricNames = []string{"views", "likes", "comments", "bookmarks", "shares", "engagement", "outlier_multiplier", "increase_1d", "increase_7d", "increase_14d", "increase_30d",
	"views_gained_7d"}

// metrics returns the metrics that the display settings select, in the order of the settings and without duplicates.
func (d displaySettings) metrics() []shareMetric {
	var out []shareMetric
	for _, name := range d.Metrics {
		column, ok := findColumn(name)
		if ok && slices.Contains(shareMetricNames, name) && !slices.ContainsFunc(out, func(m shareMetric) bool { return m.Name == name }) {
			metric := shareSums[name]
			metric.videoColumn = column
			out = append(out, metric)
		}
	}
	return out
}
