package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server/formula"
	"github.com/reeltally/reeltally/store"
)

// maxCompared is the maximum number of videos or accounts in a comparison.
const maxCompared = 5

// comparePage is the data for the template of the page that compares videos or accounts.
type comparePage struct {
	Videos       []comparedVideo
	Accounts     []comparedAccount
	ForAccounts  bool // true if the page compares accounts
	Chart        chart
	Max          int
	Link         string        // link that the visitor wants to add and that was refused; "" otherwise
	HiddenFields []hiddenField // hidden inputs of the form that adds a video or account: all query parameters of the page except "link" and "notice"
}

// comparedVideo is a video in a comparison.
type comparedVideo struct {
	client.Video
	Remove string // query of a link that removes this video from the comparison
}

// Total returns the number of compared videos or accounts.
func (p comparePage) Total() int { return len(p.Videos) + len(p.Accounts) }

// showComparison shows up to five videos or accounts in one chart. Each line is scaled so that its highest value is 100.
func showComparison(v *visit) error {
	query := v.r.URL.Query()
	if query.Has("account") || query.Get("kind") == "accounts" {
		return showAccountComparison(v)
	}
	p, err := v.period()
	if err != nil {
		return err
	}
	content := comparePage{Max: maxCompared}
	chosen, err := v.readCompared("video")
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(query.Get("link")); text != "" {
		var found client.VideoPage
		err := v.getFromAPI("/videos", url.Values{"link": {text}, "limit": {"1"}}, &found)
		added := ""
		if err == nil && len(found.Data) > 0 {
			added = found.Data[0].AdID.String()
		}
		if done, err := v.addCompared("video", added, text, err); done || err != nil {
			return err
		}
		content.Link = text
	}
	lines := newComparedLines(len(chosen))
	for n, id := range chosen {
		var video client.Video
		var history client.VideoHistory
		if err := v.getFromAPI("/videos/"+id, nil, &video); err != nil {
			return err
		}
		if err := v.getFromAPI("/videos/"+id+"/history", v.historyQuery(p), &history); err != nil {
			return err
		}
		content.Videos = append(content.Videos, comparedVideo{video, linkWithout(query, "video", chosen, n)})
		lines.metrics = append(lines.metrics, metric{Name: fmt.Sprintf("video-%d", n+1), Label: titleOf(video)})
		lines.csvNames = append(lines.csvNames, formula.Escape(video.AdLink))
		for _, h := range history {
			lines.setValue(store.DateOf(h.Date.Time), n, h.Views, h.Interpolated != nil && *h.Interpolated)
		}
	}
	if len(chosen) > 0 {
		content.Chart = v.newComparedChart(lines, p, "Views of each video", "Each line is scaled: 100 is the highest value of the video in the period. The table has the views themselves.")
		if v.csvPart() != "" {
			return v.sendHistory("comparison", content.Chart)
		}
	}
	content.HiddenFields = hiddenFields(withParameters(query, "link", ""))
	return v.renderPage(http.StatusOK, "compare", "videos", "Compare videos", content)
}

// comparedLines are the lines of the chart that compares videos or accounts. There is one line for each of them, in the order in which they were chosen.
type comparedLines struct {
	metrics  []metric
	csvNames []string
	days     map[store.Date]*point
	total    int // number of lines
}

func newComparedLines(total int) *comparedLines {
	return &comparedLines{days: map[store.Date]*point{}, total: total}
}

// setValue sets the value of line n on a day. isComputed is true if the value is interpolated.
func (l *comparedLines) setValue(day store.Date, n int, value *int64, isComputed bool) {
	if l.days[day] == nil {
		l.days[day] = &point{Day: day, Values: make([]*int64, l.total), Computed: make([]bool, l.total)}
	}
	l.days[day].Values[n] = value
	l.days[day].Computed[n] = value != nil && isComputed
}

// newComparedChart returns the chart of the lines. subject says what each line shows, for the heading of printed pages.
func (v *visit) newComparedChart(lines *comparedLines, p period, subject, caption string) chart {
	points := make([]point, 0, len(lines.days))
	for _, at := range lines.days {
		points = append(points, *at)
	}
	slices.SortFunc(points, func(a, b point) int { return int(b.Day - a.Day) })
	c := v.newChart(caption, p, lines.metrics, pointsForPeriod(points, p))
	c.Compared, c.Subject, c.CSVNames = true, subject, lines.csvNames
	return c
}

// linkWithout returns the query of a link that removes the chosen item with index n from a comparison.
func linkWithout(query url.Values, parameter string, chosen []string, n int) string {
	without := withParameters(query)
	without[parameter] = slices.Delete(slices.Clone(chosen), n, n+1)
	if len(without[parameter]) == 0 && parameter == "account" {
		without.Set("kind", "accounts")
	}
	return "?" + without.Encode()
}

// readCompared returns the ids in the query parameter "video" or "account", at most maxCompared. If the query has more, the page
// shows a message that says so.
func (v *visit) readCompared(parameter string) ([]string, error) {
	chosen, err := chosenIDs(v.r.URL.Query(), parameter)
	if err != nil || len(chosen) <= maxCompared {
		return chosen, err
	}
	err = v.refuseFilter(&Problem{Status: http.StatusBadRequest, Title: "Too many " + parameter + "s",
		Detail: fmt.Sprintf("You chose %d %ss; a comparison has at most %d. The first %d are shown.", len(chosen), parameter, maxCompared, maxCompared)})
	return chosen[:maxCompared], err
}

// addCompared redirects the browser to the same comparison with the item that the visitor has added by its link, and returns true. id is the id of the
// item, or "" if it was not found. err is the error of the search for the link. If the link is refused, the page shows why, and addCompared returns
// false.
func (v *visit) addCompared(parameter, id, link string, err error) (done bool, _ error) {
	if id != "" {
		query := v.r.URL.Query()
		query.Del("link")
		query.Del("kind")
		query.Add(parameter, id)
		v.redirectTo("/compare?" + query.Encode())
		return true, nil
	}
	if err == nil {
		err = &Problem{Status: http.StatusBadRequest, Title: "Not tracked", Detail: "Your organisation does not track the " + parameter + " " + strconv.Quote(link) + "."}
	}
	return false, v.refuseFilter(err)
}
