package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

const (
	// maxChosen is the maximum number of videos that can be changed at once. A list has at most this number of videos on a page.
	maxChosen = pageSize
	// maxNamed is the maximum number of videos that the page names in a list.
	maxNamed = 10
)

// chosenPage is the data for the template of the page that changes the videos that the visitor chose in a list. Before a change, the page has the
// buttons of all changes. After a change, the page has the results.
type chosenPage struct {
	IDs         []string // ids of the chosen videos
	Tracked     []string // ids of the chosen videos that are tracked; set only before a change
	Stopped     []string // ids of the chosen videos whose tracking was stopped; set only before a change
	Back        string   // path and query of the list
	Named       namedVideos
	Collections []client.Collection
	Collection  string // id of the chosen collection; "" if none is chosen
	CountsFrom  string // first day whose gains count in the collection, as the visitor has entered it; "" if none was entered
	Today       store.Date
	Problem     *Problem
	Results     []chosenResult
	Next        nextChange
	Undo        *addition          // videos that were added to a collection, which the page can take out again; nil if there are none
	RemoveFrom  *client.Collection // collection from which the visitor is asked to remove the videos; nil if the page does not ask
}

// namedVideos are videos that the page names. More is the number of further videos, which it does not name.
type namedVideos struct {
	Videos []client.Video
	More   int
}

// chosenResult says what a change did to some of the chosen videos, for example how many of them were refreshed.
type chosenResult struct {
	Class, Icon string // colour and icon of the result
	Text        string // the result in words, with the number of videos
	Note        string // explanation; "" if there is none
	Named       namedVideos

	Failures     []failedChange // failed changes with different reasons, in place of Named
	MoreFailures int            // number of further failed changes
}

// failedChange is a video that was not changed, with the reason.
type failedChange struct {
	Video  client.Video
	Reason string
}

// nextChange is a change that the page offers after another change. It is zero if the page offers none.
type nextChange struct {
	Action, Text string
	IDs          []string
	Collection   string // id of the collection that the change needs; "" if it needs none
	Note         string // explanation of the change; "" if there is none
}

// changeKind says what happened to a chosen video.
type changeKind int

const (
	changeDone      changeKind = iota
	changeNotNeeded            // the video was in this state before
	changeFailed
)

// videoChange is what happened to a chosen video. Reason is set only for failed changes.
type videoChange struct {
	ID     string
	Kind   changeKind
	Reason string
}

// chosenIDs returns the ids in the query or form parameter "video" or "account", without duplicates. It returns a *Problem if a value is not an id.
func chosenIDs(query url.Values, parameter string) ([]string, error) {
	var chosen []string
	for _, text := range query[parameter] {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, &Problem{Status: http.StatusBadRequest, Title: "Not an id", Detail: fmt.Sprintf("%s is %q; it must be the id of %s.", parameter, text, map[string]string{"video": "a video", "account": "an account"}[parameter])}
		}
		if !slices.Contains(chosen, id.String()) {
			chosen = append(chosen, id.String())
		}
	}
	return chosen, nil
}

// idsToChange is like chosenIDs, but also returns a *Problem if there is no id, or more than maxChosen.
func idsToChange(form url.Values, parameter string) ([]string, error) {
	ids, err := chosenIDs(form, parameter)
	switch n := len(ids); {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, &Problem{Status: http.StatusBadRequest, Title: "No " + parameter, Detail: "Choose at least one " + parameter + " with the boxes at the left of the list."}
	case n > maxChosen:
		return nil, &Problem{Status: http.StatusBadRequest, Title: "Too many " + parameter + "s", Detail: fmt.Sprintf("You chose %d %ss; at most %d can be changed at once.", n, parameter, maxChosen)}
	}
	return ids, nil
}

// readBack returns the form field "back": the path and query of the page to which the browser returns. It returns a *Problem if the field is not the
// path of a page of this server.
func (v *visit) readBack() (*url.URL, error) {
	back, err := url.Parse(v.r.FormValue("back"))
	// If a path begins with two slashes, browsers take it for the address of another server.
	if err != nil || back.IsAbs() || back.Host != "" || !strings.HasPrefix(back.Path, "/") || strings.HasPrefix(back.EscapedPath(), "//") {
		return nil, &Problem{Status: http.StatusBadRequest, Title: "No page", Detail: "The field \"back\" must be the path of a page, such as /video."}
	}
	return back, nil
}

// readChosen reads the chosen videos and the list from the query or the form of the request.
func (v *visit) readChosen() (chosenPage, error) {
	back, err := v.readBack()
	if err != nil {
		return chosenPage{}, err
	}
	v.back = back.EscapedPath() + "?" + withParameters(back.Query()).Encode()
	content := chosenPage{Back: back.EscapedPath() + "?" + withParameters(back.Query(), "notice", "").Encode(), Collection: v.r.FormValue("collection"),
		CountsFrom: v.r.FormValue("counts_from"), Today: store.DateOf(v.Now())}
	content.IDs, err = idsToChange(v.r.Form, "video")
	return content, err
}

// showChosenVideos shows the changes that are possible for the videos that the visitor has chosen in a list.
func showChosenVideos(v *visit) error {
	content, err := v.readChosen()
	if err != nil {
		return err
	}
	if content.Collection == "" {
		content.Collection = listedCollection(content.Back)
	}
	return v.renderChosen(content)
}

// renderChosen shows the buttons of all changes that are possible for at least one of the chosen videos. If the page has a problem, the response has
// the status of this problem.
func (v *visit) renderChosen(content chosenPage) (err error) {
	if content.Named, err = v.nameVideos(content.IDs); err != nil {
		return err
	}
	content.Tracked, content.Stopped = nil, nil
	for _, id := range content.IDs {
		video, err := v.readVideo(id)
		switch {
		case err != nil:
			return err
		case video.Removed:
			content.Stopped = append(content.Stopped, id)
		case video.AdID != uuid.Nil:
			content.Tracked = append(content.Tracked, id)
		}
	}
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	status := http.StatusOK
	if content.Problem != nil {
		status = content.Problem.Status
		v.keepInHistory()
	}
	return v.renderPage(status, "chosen", "videos", "Change "+plural(len(content.IDs), "video", "videos"), content)
}

// changeChosenVideos performs an action on the videos that the visitor has chosen in a list, and shows what happened to them.
func changeChosenVideos(v *visit) error {
	content, err := v.readChosen()
	if err != nil {
		return err
	}
	var changes []videoChange
	var texts changeTexts
	switch v.r.PathValue("action") {
	case "stop":
		texts = changeTexts{"Tracking stopped", "The numbers so far are kept.", "Stopped before", "Not stopped"}
		changes, err = v.stopVideos(content.IDs)
	case "track":
		texts = changeTexts{"Tracked again", "The numbers so far were kept.", "Tracked already", "Not tracked"}
		changes, err = v.trackVideosAgain(content.IDs)
	case "refresh":
		texts = changeTexts{"Refresh requested", "New numbers usually arrive within a minute.", "Not refreshed, because the numbers are less than 4 hours old", "Not refreshed"}
		changes, content.Next, err = v.refreshVideos(content.IDs)
	case "collect":
		return v.collectChosenVideos(content)
	case "remove":
		return v.removeChosenVideos(content)
	default:
		return errNotFound
	}
	if err != nil {
		return err
	}
	if v.r.PathValue("action") == "stop" {
		if stopped := idsOf(changes, changeDone); len(stopped) > 0 {
			content.Next = nextChange{Action: "track", Text: "Track " + plural(len(stopped), "video", "videos") + " again", IDs: stopped}
		}
	}
	if content.Results, err = v.describeChanges(changes, texts); err != nil {
		return err
	}
	return v.renderResults(content)
}

// renderResults shows the page with the results of a change: which of the chosen videos were changed, and why the others were not.
func (v *visit) renderResults(content chosenPage) error {
	v.keepInHistory()
	return v.renderPage(http.StatusOK, "chosen", "videos", plural(len(content.IDs), "chosen video", "chosen videos"), content)
}

// changeTexts are the headings of the results of a change, and a note on the videos that were changed.
type changeTexts struct{ done, note, notNeeded, failed string }

// idsOf returns the ids of the videos whose change is of the given kind.
func idsOf(changes []videoChange, kind changeKind) []string {
	var ids []string
	for _, c := range changes {
		if c.Kind == kind {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// describeChanges returns the results to show: first the changed videos, then those for which there was nothing to change, then those that failed.
func (v *visit) describeChanges(changes []videoChange, texts changeTexts) (results []chosenResult, err error) {
	for _, group := range []struct {
		kind              changeKind
		class, icon, text string
		note              string
	}{{changeDone, "good", "check", texts.done, texts.note}, {changeNotNeeded, "neutral", "check", texts.notNeeded, ""}} {
		ids := idsOf(changes, group.kind)
		if len(ids) == 0 {
			continue
		}
		r := chosenResult{Class: group.class, Icon: group.icon, Text: group.text + ": " + plural(len(ids), "video", "videos"), Note: group.note}
		if r.Named, err = v.nameVideos(ids); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	failed := slices.DeleteFunc(slices.Clone(changes), func(c videoChange) bool { return c.Kind != changeFailed })
	if len(failed) == 0 {
		return results, nil
	}
	r := chosenResult{Class: "bad", Icon: "alert", Text: texts.failed + ": " + plural(len(failed), "video", "videos")}
	// A reason that all failed videos share is shown once.
	if !slices.ContainsFunc(failed, func(c videoChange) bool { return c.Reason != failed[0].Reason }) {
		r.Note = failed[0].Reason
		r.Named, err = v.nameVideos(idsOf(failed, changeFailed))
		return append(results, r), err
	}
	for n, c := range failed {
		video, err := v.readVideo(c.ID)
		if err != nil {
			return nil, err
		}
		if r.Failures = append(r.Failures, failedChange{video, c.Reason}); n+1 == maxNamed {
			break
		}
	}
	r.MoreFailures = len(failed) - len(r.Failures)
	return append(results, r), nil
}

// nameVideos reads the first maxNamed of the videos. It leaves out videos that the organisation does not have. More is the number of all videos that
// are not named; it is 0 if no video is named.
func (v *visit) nameVideos(ids []string) (namedVideos, error) {
	first := ids[:min(len(ids), maxNamed)]
	var named namedVideos
	for _, id := range first {
		video, err := v.readVideo(id)
		if err != nil {
			return named, err
		}
		if video.AdID != uuid.Nil {
			named.Videos = append(named.Videos, video)
		}
	}
	if len(named.Videos) > 0 {
		named.More = len(ids) - len(named.Videos)
	}
	return named, nil
}

// readVideo reads a video. If the organisation does not have it, the result has only a link: the id.
func (v *visit) readVideo(id string) (client.Video, error) {
	var video client.Video
	err := v.getFromAPI("/videos/"+id, nil, &video)
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusNotFound {
		return client.Video{AdLink: id}, nil
	}
	return video, err
}

// stopVideos stops the tracking of videos in one request to the API, and returns one change for each video. The change of a
// video that was stopped before is changeNotNeeded.
func (v *visit) stopVideos(ids []string) ([]videoChange, error) {
	var stopped client.StopResult
	if _, err := v.sendJSON(http.MethodDelete, "/videos/bulk", map[string][]string{"ids": ids}, &stopped); err != nil {
		return nil, err
	}
	changes := make([]videoChange, len(stopped.Results))
	for n, r := range stopped.Results {
		changes[n] = videoChange{r.ID.String(), changeDone, textOrEmpty(r.Error)}
		if r.Success {
			continue
		}
		changes[n].Kind = changeFailed
		// The API gives the same response for an unknown video and for a video that was stopped before.
		video, err := v.readVideo(r.ID.String())
		if err != nil {
			return nil, err
		}
		if video.Removed {
			changes[n].Kind = changeNotNeeded
		}
	}
	return changes, nil
}

// trackVideosAgain tracks videos of the organisation again.
func (v *visit) trackVideosAgain(ids []string) ([]videoChange, error) {
	changes := make([]videoChange, len(ids))
	var links []string
	positions := map[int]int{} // index in changes of each link
	for n, id := range ids {
		changes[n] = videoChange{id, changeFailed, "Your organisation has no video with this id."}
		video, err := v.readVideo(id)
		if err != nil {
			return nil, err
		}
		if video.AdID != uuid.Nil {
			positions[len(links)] = n
			links = append(links, video.AdLink)
		}
	}
	if len(links) == 0 {
		return changes, nil
	}
	var result client.TrackVideosResult
	if _, err := v.sendJSON(http.MethodPost, "/videos/bulk", client.TrackVideosRequest{Links: links}, &result); err != nil {
		return nil, err
	}
	for _, r := range result.Results {
		for _, at := range r.Positions {
			change := &changes[positions[int(at)]]
			change.Reason = textOrEmpty(r.Error)
			switch r.Status {
			case client.TrackStatusTracked:
				change.Kind = changeDone
			case client.TrackStatusAlreadyTracked:
				change.Kind = changeNotNeeded
			}
		}
	}
	return changes, nil
}

// refreshVideos requests a fetch of each video. If the rate limit is exceeded, it stops, and `next` is a change that the page offers: to
// refresh the videos that are left.
func (v *visit) refreshVideos(ids []string) (changes []videoChange, next nextChange, err error) {
	for n, id := range ids {
		status, err := v.sendJSON(http.MethodPost, "/refresh/videos", client.RefreshVideoRequest{Link: id}, nil)
		problem, refused := errors.AsType[*Problem](err)
		switch {
		case refused && problem.Status == http.StatusTooManyRequests:
			for _, left := range ids[n:] {
				changes = append(changes, videoChange{left, changeFailed, problem.Detail})
			}
			return changes, nextChange{Action: "refresh", Text: "Refresh the other " + plural(len(ids)-n, "video", "videos"), IDs: ids[n:]}, nil
		case refused && (problem.Status == http.StatusNotFound || problem.Status == http.StatusConflict):
			changes = append(changes, videoChange{id, changeFailed, problem.Detail})
		case err != nil:
			return nil, next, err
		case status == http.StatusAccepted:
			changes = append(changes, videoChange{ID: id})
		default:
			changes = append(changes, videoChange{ID: id, Kind: changeNotNeeded})
		}
	}
	return changes, next, nil
}

// collectChosenVideos adds the chosen videos to a collection. If the API refuses this, the page with the buttons says why.
func (v *visit) collectChosenVideos(content chosenPage) error {
	addition, err := v.addToCollection("video", content.IDs)
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status < http.StatusInternalServerError && problem.Status != http.StatusUnauthorized && problem.Status != http.StatusForbidden {
		v.setRetryAfter(problem)
		if len(problem.Faults) > 0 {
			problem.Detail = describeFaults(problem.Faults, map[string]string{"counts_from": "Count gains from"})
		}
		content.Problem = problem
		return v.renderChosen(content)
	}
	if err != nil {
		return err
	}
	collection, _, err := v.getCollection("/collections/" + url.PathEscape(content.Collection))
	if err != nil {
		return err
	}
	note := ""
	if content.CountsFrom != "" {
		note = "Gains count from " + content.CountsFrom + ". A video that is also in the collection through its account or a hashtag keeps an earlier day."
	}
	added := len(addition.IDs)
	if added > 0 {
		addition.Back, content.Undo = content.Back, &addition
		content.Results = append(content.Results, chosenResult{Class: "good", Icon: "check", Text: "Added to " + collection.Name + ": " + plural(added, "video", "videos"), Note: note})
	}
	if before := len(content.IDs) - added; before > 0 {
		content.Results = append(content.Results, chosenResult{Class: "neutral", Icon: "check", Text: "In " + collection.Name + " before: " + plural(before, "video", "videos"), Note: note})
	}
	return v.renderResults(content)
}
