package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
)

// progress says which newly tracked videos and accounts have been fetched for the first time.
type progress struct {
	Total   int
	Waiting []string     // the videos and accounts that have no numbers yet, as video:ID or account:ID
	Failing []string     // those of Waiting whose fetches failed or are late
	Shown   []firstFetch // states that the page shows from now on: those of videos and accounts that have arrived, and those of failing ones
	Rounds  int          // how often the page has requested the progress so far
	Ended   bool         // true if the page stops requesting the progress although numbers are still missing
}

// firstFetch is the state of the first fetch of a video or account: the fetch status, and the number of views or followers.
type firstFetch struct {
	ID, Status, Detail string
	Views              *int64 // views of a video, or followers of an account
	Unit               string
}

// hasArrived returns true if the page no longer needs to wait for the first numbers. This is so if the video or account has numbers. It is also so if
// the fetch status says that the next fetches will probably give none, for example because the video is private.
func (f firstFetch) hasArrived() bool {
	switch client.FetchStatus(f.Status) {
	case "", client.FetchStatusPending:
		return false
	case client.FetchStatusFailing, client.FetchStatusDelayed:
		return f.Views != nil
	}
	return true
}

// isFailing returns true if the video or account has no numbers because its fetches failed or are late.
func (f firstFetch) isFailing() bool {
	return !f.hasArrived() && f.Status != "" && f.Status != string(client.FetchStatusPending)
}

// OnlyFailing returns true if the fetches of all videos and accounts that have no numbers yet have failed or are late.
func (p progress) OnlyFailing() bool { return len(p.Failing) == len(p.Waiting) }

// HasManyLinks returns true if there are more than manyLinks links. They are fetched after the links of smaller requests.
func (p progress) HasManyLinks() bool { return p.Total > manyLinks }

// FetchedCount returns how many of the tracked videos and accounts are no longer waiting for their first fetch.
func (p progress) FetchedCount() int { return p.Total - len(p.Waiting) }

const (
	// maxRounds is the maximum number of requests for progress. The page sends one every five seconds, so it stops after about ten minutes.
	maxRounds       = 120
	roundsPerMinute = 12
	// maxLookUps is the maximum number of look-ups for one request from the browser. A look-up requests
	// one video or account from the API.
	maxLookUps = 10
	// manyLinks is the highest number of links for which the page promises the numbers within a minute. For more links, the page promises them within
	// some minutes. The API fetches the items of a request with more than 50 links after those of smaller requests.
	manyLinks = 50
)

// showProgress says which videos and accounts have been fetched for the first time. The page Track
// regularly sends this request.
func showProgress(v *visit) error {
	before, err := v.readProgressForm()
	if err != nil {
		return err
	}
	p := progress{Total: before.Total, Rounds: before.Rounds + 1}
	p.Ended = p.Rounds >= maxRounds
	recent, err := v.recentVideos(before.Waiting)
	if err != nil {
		return err
	}
	failing := map[string]bool{}
	for _, item := range before.Failing {
		failing[item] = true
	}
	lookUps := 0
	var lookedUp []string // items that still wait after their look-up; they come last in the next request, so that it looks up other items
	for _, item := range before.Waiting {
		kind, text, _ := strings.Cut(item, ":")
		id, err := uuid.Parse(text)
		if err != nil || kind != "video" && kind != "account" {
			continue
		}
		state, ok := recent[id]
		looksUp := !ok && lookUps < maxLookUps
		if looksUp {
			lookUps++
			if state, err = v.lookUpItem(kind, id); err != nil {
				return err
			}
		}
		if state.hasArrived() {
			p.Shown = append(p.Shown, state)
			continue
		}
		// A state that the page already shows is shown again only once a minute, because screen readers read each change of the page.
		if state.isFailing() && (!failing[item] || p.Rounds%roundsPerMinute == 0) {
			p.Shown = append(p.Shown, state)
		}
		if ok || looksUp {
			failing[item] = state.isFailing()
		}
		if failing[item] {
			p.Failing = append(p.Failing, item)
		}
		switch {
		case looksUp:
			lookedUp = append(lookedUp, item)
		default:
			p.Waiting = append(p.Waiting, item)
		}
	}
	p.Waiting = append(p.Waiting, lookedUp...)
	return v.executeTemplate(http.StatusOK, "track", "progress", p)
}

// readProgressForm returns the progress at the previous request, which the form contains.
func (v *visit) readProgressForm() (progress, error) {
	if err := v.r.ParseForm(); err != nil {
		return progress{}, &Problem{Status: http.StatusBadRequest, Title: "Invalid form", Detail: "The form cannot be read."}
	}
	total, errTotal := strconv.Atoi(v.r.PostFormValue("total"))
	rounds, errRounds := strconv.Atoi(v.r.PostFormValue("rounds"))
	p := progress{Total: total, Rounds: rounds, Waiting: v.r.PostForm["waiting"], Failing: v.r.PostForm["failing"]}
	if errTotal != nil || errRounds != nil || len(p.Waiting) > maxPasted || total < len(p.Waiting) {
		return progress{}, &Problem{Status: http.StatusBadRequest, Title: "Invalid form", Detail: "The form does not belong to this page."}
	}
	return p, nil
}

// recentVideos returns the state of the first fetch of the organisation's newest videos, by video id, for at
// most len(waitingItems) videos. The result is empty if the tier masks metrics.
func (v *visit) recentVideos(waitingItems []string) (map[uuid.UUID]firstFetch, error) {
	states := map[uuid.UUID]firstFetch{}
	if v.hidesNumbers() || !slices.ContainsFunc(waitingItems, func(item string) bool { return strings.HasPrefix(item, "video:") }) {
		return states, nil
	}
	var found client.VideoPage
	if err := v.getFromAPI("/videos", url.Values{"order_by": {"created_at"}, "limit": {strconv.Itoa(len(waitingItems))}}, &found); err != nil {
		return nil, err
	}
	for _, video := range found.Data {
		states[video.AdID] = firstFetchOf(video)
	}
	return states, nil
}

// lookUpItem requests one video or account from the API. If the video or account does not exist, the status of the result is "stopped".
func (v *visit) lookUpItem(kind string, id uuid.UUID) (firstFetch, error) {
	var err error
	var state firstFetch
	if kind == "video" {
		var video client.Video
		if err = v.getFromAPI("/videos/"+id.String(), nil, &video); err == nil {
			state = firstFetchOf(video)
		}
	} else {
		var account client.Account
		if err = v.getFromAPI("/accounts/"+id.String(), nil, &account); err == nil {
			state = firstFetch{ID: id.String(), Status: textOrEmpty(account.FetchStatus), Detail: textOrEmpty(account.FetchDetail), Views: account.LatestFollowersCount, Unit: "followers"}
		}
	}
	if problem, ok := err.(*Problem); ok && problem.Status == http.StatusNotFound { //nolint:errorlint // getFromAPI returns a *Problem itself
		return firstFetch{ID: id.String(), Status: "stopped"}, nil
	}
	return state, err
}

// firstFetchOf converts a video of the API to a firstFetch.
func firstFetchOf(video client.Video) firstFetch {
	return firstFetch{ID: video.AdID.String(), Status: string(video.FetchStatus), Detail: textOrEmpty(video.FetchDetail), Views: video.LatestViews, Unit: "views"}
}
