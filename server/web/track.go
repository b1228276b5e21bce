package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store/link"
)

// trackPage is the data for the template of the page that tracks links.
type trackPage struct {
	Text          string
	Collections   []client.Collection
	Collection    string // id of the chosen collection; "" if none is chosen
	TrackingTypes []string
	TrackingType  string
	Results       []trackResult
	Progress      progress
	Problems      []*Problem // why the API refused whole requests, or why links were not sent to it
	Left          []string   // links that were not tracked because of the problems; they stay in the form
	Repeated      []string   // pasted links that repeat an earlier link, also in another form
	Notes         []pasteNote
	Warnings      []string
}

// pasteNote says what happened to pasted text that has no row of its own in the table of results. Lines has the first maxNamed texts, and More is the
// number of the others.
type pasteNote struct {
	Text  string
	Lines []string
	More  int
}

// newPasteNote returns a note about pasted texts. Long texts are cut.
func newPasteNote(text string, lines []string) pasteNote {
	note := pasteNote{Text: text, More: max(0, len(lines)-maxNamed)}
	for _, line := range lines[:len(lines)-note.More] {
		if shown := []rune(line); len(shown) > 200 {
			line = string(shown[:200]) + "…"
		}
		note.Lines = append(note.Lines, line)
	}
	return note
}

// trackResult is the result of tracking one link.
type trackResult struct {
	Link                 string
	Kind                 string // "video" or "account"
	ID                   string // id of the video or account; "" if the link was refused
	Path                 string // path of the dashboard page of the video or account; "" if the link was refused
	Word                 string // the result in words, for example Tracked
	Class                string // CSS class that gives the result its colour
	Icon                 string
	Reason               string
	Waiting              bool        // true if the page in the browser regularly asks the server whether the video or account has numbers
	ShownAsTrackedBefore bool        // true if the video or account was tracked before. startProgress sets this field to false if the fetch status is "pending" or unknown
	State                *firstFetch // state of a video or account that was tracked before; nil if it was not looked up, or if its fetch status is "pending" or unknown
}

// trackingOrder lists the tracking types of accounts in the order of the form.
var trackingOrder = []string{"latest_30", "latest_200", "all", "new_only"}

// showTrackingForm shows the page with the form that tracks links.
func showTrackingForm(v *visit) error {
	content := trackPage{Text: v.r.URL.Query().Get("links"), Collection: v.r.URL.Query().Get("collection")}
	return v.renderTrackingForm(content)
}

// renderTrackingForm shows the form that tracks links, and the results of the links that were submitted last. If there are only problems, the
// response has the status of the first one.
func (v *visit) renderTrackingForm(content trackPage) error {
	var err error
	if content.Collections, err = v.collections(); err != nil {
		return err
	}
	if err := content.addChosenCollection(v); err != nil {
		return err
	}
	content.TrackingTypes = trackingOrder
	status := http.StatusOK
	if len(content.Problems) > 0 && len(content.Results) == 0 {
		status = content.Problems[0].Status
	}
	return v.renderPage(status, "track", "", "Track", content)
}

// addChosenCollection adds the chosen collection to the options of the form if it is missing there. It can be missing if the tier hides numbers, because
// then only the first collection is listed. Without this option, the form would not add the videos to the collection. If the collection does not exist,
// for example because it was deleted in another browser tab, addChosenCollection selects no collection and adds an error message to the page.
func (p *trackPage) addChosenCollection(v *visit) error {
	if p.Collection == "" || slices.ContainsFunc(p.Collections, func(c client.Collection) bool { return c.ID.String() == p.Collection }) {
		return nil
	}
	var chosen client.Collection
	err := v.getFromAPI("/collections/"+url.PathEscape(p.Collection), nil, &chosen)
	if problem, ok := errors.AsType[*Problem](err); ok && (problem.Status == http.StatusNotFound || problem.Status == http.StatusBadRequest) {
		p.Collection = ""
		if len(p.Problems) == 0 {
			p.Problems = []*Problem{{Status: http.StatusNotFound, Detail: "The chosen collection does not exist. Was it deleted? The form now adds the links to no collection."}}
		}
		return nil
	}
	if err != nil {
		return err
	}
	p.Collections = append(p.Collections, chosen)
	return nil
}

// platformAddress matches how a link begins if it lacks http:// and https://: with the host of a platform and a slash.
const platformAddress = `(?:[a-z0-9-]+\.)*(?:tiktok\.com|instagram\.com|youtube\.com|youtu\.be|facebook\.com|fb\.watch|fb\.com)/`

// linkPattern matches a link in a text, together with further links that follow without white space. The link begins with http://, with
// https://, or with the host of a platform. Full-width punctuation ends the match, because links contain it only percent-encoded.
var linkPattern = regexp.MustCompile(`(?i)(?:https?://|` + platformAddress + `)[^\s<>"'` + "`" + `。．，、；：！？｜]*`)

// nextLinkPattern matches the beginning of the next link in a match of linkPattern, and the character before it. After "=", a link is the
// value of a query parameter, and not the next link.
var nextLinkPattern = regexp.MustCompile(`(?i)[^=](https?://)|[,;|](` + platformAddress + `)`)

// splitLinks returns the links in text, which is a match of linkPattern.
func splitLinks(text string) []string {
	var links []string
	start := 0
	for _, found := range nextLinkPattern.FindAllStringSubmatchIndex(text, -1) {
		next := max(found[2], found[4]) // one of the two groups has no match, and its index is -1
		links = append(links, text[start:next])
		start = next
	}
	return append(links, text[start:])
}

// addressPattern matches a word that can be a mistyped link, or the link of a platform that is not supported.
var addressPattern = regexp.MustCompile(`://|^[^\s/]+\.[^\s/]+/`)

// pastedText is the content of a pasted text, line by line: links, repeated links and other lines. Empty lines are left out.
type pastedText struct {
	Links    []string // links in order and without duplicates. For a line without links, the words that can be mistyped links
	Repeated []string // links of an earlier line, once for each further line
	Other    []string // lines without a link
}

// readPasted finds the links in a text.
func readPasted(text string) pastedText {
	var pasted pastedText
	seen := map[string]int{} // number of the last line with each link
	number := 0
	for line := range strings.Lines(text) {
		number++
		var found []string
		for _, match := range linkPattern.FindAllString(line, -1) {
			found = append(found, splitLinks(match)...)
		}
		if words := strings.Fields(line); len(found) == 0 {
			for _, word := range words {
				// The API refuses a mistyped link, and the visitor sees why.
				if len(words) == 1 || addressPattern.MatchString(word) {
					found = append(found, word)
				}
			}
		}
		hasLink := false
		for _, l := range found {
			// A comma, a bracket or a similar mark at the end belongs to the text around the link.
			if l = strings.TrimRight(l, ".,;:!?)]}>|"); l == "" {
				continue
			}
			hasLink = true
			switch seen[l] {
			case 0:
				pasted.Links = append(pasted.Links, l)
			case number:
			default:
				pasted.Repeated = append(pasted.Repeated, l)
			}
			seen[l] = number
		}
		if line = strings.TrimSpace(line); !hasLink && line != "" {
			pasted.Other = append(pasted.Other, line)
		}
	}
	return pasted
}

// maxPasted is the maximum number of links in one submission of the page. It is also the maximum number of videos and
// accounts in one request for progress.
const maxPasted = 1000

// trackPastedLinks tracks the links in the form and shows the result of each one.
func trackPastedLinks(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &Problem{Status: http.StatusRequestEntityTooLarge, Title: "The text is too long",
				Detail: fmt.Sprintf("The form may have at most %d MiB. Go back and paste the text in parts. Nothing was tracked.", tooLarge.Limit>>20)}
		}
		return &Problem{Status: http.StatusBadRequest, Title: "Invalid form", Detail: "The form cannot be read."}
	}
	// The form that adds links to a collection after they were tracked sends each link in a field of its own.
	content := trackPage{Text: cmp.Or(v.r.PostFormValue("links"), strings.Join(v.r.PostForm["link"], "\n")), Collection: v.r.PostFormValue("collection"), TrackingType: v.r.PostFormValue("tracking_type")}
	pasted := readPasted(content.Text)
	links := pasted.Links
	content.Repeated = pasted.Repeated
	if len(links) == 0 {
		content.Problems = []*Problem{{Status: http.StatusBadRequest, Detail: "The text has no links. Paste at least one."}}
	}
	surplus := links[min(len(links), maxPasted):]
	videos, accounts := splitByKind(links[:len(links)-len(surplus)])
	labels := []uuid.UUID{}
	if id, err := uuid.Parse(content.Collection); err == nil {
		labels = append(labels, id)
	}
	moreAccounts, err := content.trackVideos(v, videos, labels)
	if err != nil {
		return err
	}
	if err := content.trackAccounts(v, append(accounts, moreAccounts...), labels); err != nil {
		return err
	}
	if err := v.startProgress(&content); err != nil {
		return err
	}
	content.addMessages(len(links), surplus, pasted.Other)
	v.keepInHistory()
	return v.renderTrackingForm(content)
}

// splitByKind splits links into those of accounts and all others. The others include short links, which can still lead to accounts.
func splitByKind(links []string) (videos, accounts []string) {
	for _, text := range links {
		if parsed, err := link.Parse(text); err == nil && parsed.Kind == link.Account {
			accounts = append(accounts, text)
		} else {
			videos = append(videos, text)
		}
	}
	return videos, accounts
}

// trackVideos tracks the videos of the links and adds the results to the page. It returns the links that lead to accounts.
func (p *trackPage) trackVideos(v *visit, links []string, labels []uuid.UUID) (accounts []string, err error) {
	for chunk := range slices.Chunk(links, maxBulk) {
		var result client.TrackVideosResult
		if err := p.sendLinks(v, "/videos/bulk", chunk, client.TrackVideosRequest{Links: chunk, LabelIds: labels}, &result); err != nil {
			return nil, err
		}
		p.addWarnings(result.Warnings)
		for _, e := range result.Results {
			p.addRepeated(chunk, e.Positions)
			if e.Code != nil && *e.Code == client.TrackFailureWrongKind { // a short link that leads to an account
				accounts = append(accounts, e.URL)
				continue
			}
			p.addResult("video", e.URL, e.VideoID, e.Status, e.Error)
		}
	}
	return accounts, nil
}

// trackAccounts tracks the accounts of the links and adds the results to the page.
func (p *trackPage) trackAccounts(v *visit, links []string, labels []uuid.UUID) error {
	var trackingType *client.TrackingType
	// The first type is the default of the API, and is not sent. Otherwise, if the visitor has not chosen a type, the API would warn that tracked accounts
	// keep another type.
	if p.TrackingType != "" && p.TrackingType != trackingOrder[0] {
		trackingType = new(client.TrackingType(p.TrackingType))
	}
	for chunk := range slices.Chunk(links, maxBulk) {
		var result client.TrackAccountsResult
		body := client.TrackAccountsRequest{Links: chunk, LabelIds: labels, TrackingType: trackingType}
		if err := p.sendLinks(v, "/accounts/bulk", chunk, body, &result); err != nil {
			return err
		}
		p.addWarnings(result.Warnings)
		for _, e := range result.Results {
			p.addRepeated(chunk, e.Positions)
			p.addResult("account", e.URL, e.AccountID, e.Status, e.Error)
		}
	}
	return nil
}

// maxBulk is the maximum number of links in a bulk request to the API.
const maxBulk = 500

// sendLinks sends a bulk request with some of the links. If the API refuses the request, the page shows why, and sendLinks sends no further requests. It
// then leaves result unchanged, and the links stay in the form. It returns an error only if the visitor cannot solve the problem.
func (p *trackPage) sendLinks(v *visit, path string, links []string, body, result any) error {
	if len(p.Problems) == 0 {
		_, err := v.sendJSON(http.MethodPost, path, body, result)
		if err == nil {
			return nil
		}
		problem, ok := errors.AsType[*Problem](err)
		if !ok || problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusUnauthorized {
			return err
		}
		switch problem.Status {
		case http.StatusTooManyRequests:
			problem.Detail += " The links that were not tracked are still in the text field."
		case http.StatusNotFound: // the only item that the request names is the chosen collection
			problem.Detail = "The chosen collection does not exist. Was it deleted? The links in the text field were not tracked. Press \"Track\" to track them without a collection, or choose another one."
		}
		p.Problems = append(p.Problems, problem)
	}
	p.Left = append(p.Left, links...)
	return nil
}

// addWarnings adds the warnings of a bulk request to the page, except those that the page already has.
func (p *trackPage) addWarnings(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(p.Warnings, w) {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

// The results of links that are tracked, in words.
const (
	wordTracked        = "Tracked"
	wordAlreadyTracked = "Already tracked"
)

// addRepeated notes the links that the API found to mean the same as an earlier link of the request. positions has the positions of the link and of its
// other forms in the request.
func (p *trackPage) addRepeated(sent []string, positions client.LinkPositions) {
	for _, at := range positions[min(1, len(positions)):] {
		p.Repeated = append(p.Repeated, sent[at])
	}
}

// addResult adds the result of one link. itemKind is "video" or "account". itemID is nil if the link was refused.
func (p *trackPage) addResult(itemKind, url string, itemID *uuid.UUID, status client.TrackStatus, reason *string) {
	r := trackResult{Link: url, Kind: itemKind, Reason: textOrEmpty(reason)}
	switch status {
	case client.TrackStatusTracked:
		r.Word, r.Class, r.Icon, r.Waiting = wordTracked, "good", "check", true
		if itemKind == "account" {
			r.Reason = "Next, " + trackingTypes[cmp.Or(p.TrackingType, trackingOrder[0])] + " are found and tracked."
		}
	case client.TrackStatusAlreadyTracked:
		r.Word, r.Class, r.Icon, r.Reason, r.Waiting, r.ShownAsTrackedBefore = wordAlreadyTracked, "neutral", "check", "", true, true
	default:
		r.Word, r.Class, r.Icon = "Refused", "bad", "alert"
	}
	if itemID != nil {
		r.ID = itemID.String()
		if parsed, err := link.Parse(url); err == nil && parsed.Platform != "" {
			r.Path = "/" + itemKind + "/" + string(parsed.Platform) + "/" + r.ID
		}
	}
	p.Results = append(p.Results, r)
}

// startProgress lists the videos and accounts for whose first numbers the page waits. It first looks up at most maxLookUps of those that were tracked
// before, because they can have numbers already. The page requests the missing states later.
func (v *visit) startProgress(content *trackPage) error {
	lookUps := 0
	for n := range content.Results {
		r := &content.Results[n]
		if id, err := uuid.Parse(r.ID); err == nil && r.ShownAsTrackedBefore && lookUps < maxLookUps {
			lookUps++
			state, err := v.lookUpItem(r.Kind, id)
			if err != nil {
				return err
			}
			switch {
			case state.hasArrived():
				r.State, r.Waiting = &state, false
			case state.isFailing():
				r.State = &state
			default:
				r.ShownAsTrackedBefore = false // a video or account that still waits for numbers is shown like a newly tracked one
			}
		}
		if r.Waiting {
			item := r.Kind + ":" + r.ID
			content.Progress.Waiting = append(content.Progress.Waiting, item)
			if r.State != nil {
				content.Progress.Failing = append(content.Progress.Failing, item)
			}
		}
	}
	content.Progress.Total = len(content.Progress.Waiting)
	return nil
}

// addMessages adds the messages about links that were pasted more than once, refused or not sent, and about the lines without a link. It moves the refused links to the beginning of the
// results, and keeps in the form only the links that can be tracked with the next submission. pasted is the number of links in the form, and surplus
// has those of them that were not sent because they are too many.
func (p *trackPage) addMessages(pasted int, surplus, linesWithoutLink []string) {
	if len(surplus) > 0 {
		p.Problems = append(p.Problems, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf(
			"You pasted %s links, but at most %s can be tracked at a time. The last %s are still in the text field. Press \"Track\" once more to track them.",
			formatCount(pasted), formatCount(maxPasted), formatCount(len(surplus)))})
		p.Left = append(p.Left, surplus...)
	}
	if len(p.Results) > 0 {
		p.Text = strings.Join(p.Left, "\n") // the table of results shows the other links
	}
	refused := slices.DeleteFunc(slices.Clone(p.Results), func(r trackResult) bool { return r.ID != "" })
	if len(refused) > 0 {
		p.Results = append(refused, slices.DeleteFunc(p.Results, func(r trackResult) bool { return r.ID == "" })...)
		p.Warnings = append(p.Warnings, plural(len(refused), "link was", "links were")+" refused; the list below says why.")
	}
	if n := len(p.Repeated); n > 0 {
		p.Notes = append(p.Notes, newPasteNote(plural(n, "link repeats", "links repeat")+" an earlier link, exactly or in another form. The list below has each video and account once.", p.Repeated))
	}
	if n := len(linesWithoutLink); n > 0 {
		p.Notes = append(p.Notes, newPasteNote(plural(n, "line has no link, so it was ignored.", "lines have no link, so they were ignored."), linesWithoutLink))
	}
}

// Summary says how many links are tracked. It returns "" if all links were refused.
func (p trackPage) Summary() string {
	tracked, before := 0, 0
	for _, r := range p.Results {
		switch r.Word {
		case wordTracked:
			tracked++
		case wordAlreadyTracked:
			before++
		}
	}
	var sentences []string
	if tracked > 0 {
		sentences = append(sentences, plural(tracked, "link is", "links are")+" newly tracked.")
	}
	if before > 0 {
		sentences = append(sentences, plural(before, "link was", "links were")+" tracked before.")
	}
	return strings.Join(sentences, " ")
}

// ChosenCollection returns the collection to which the links are added, or nil if the visitor chose none.
func (p trackPage) ChosenCollection() *client.Collection {
	at := slices.IndexFunc(p.Collections, func(c client.Collection) bool { return c.ID.String() == p.Collection })
	if at < 0 {
		return nil
	}
	return &p.Collections[at]
}

// TrackedLinks returns the links that are tracked now, if the page offers to add them to a collection: the visitor chose no collection, and there is one.
func (p trackPage) TrackedLinks() []string {
	if p.Collection != "" || len(p.Collections) == 0 {
		return nil
	}
	var links []string
	for _, r := range p.Results {
		if r.ID != "" {
			links = append(links, r.Link)
		}
	}
	return links
}

// TrackedItems says how many videos and accounts the tracked links are, for example "2 videos and 1 account".
func (p trackPage) TrackedItems() string {
	counts := map[string]int{}
	for _, r := range p.Results {
		if r.ID != "" {
			counts[r.Kind]++
		}
	}
	videos, accounts := counts["video"], counts["account"]
	var parts []string
	if videos > 0 {
		parts = append(parts, plural(videos, "video", "videos"))
	}
	if accounts > 0 {
		parts = append(parts, plural(accounts, "account", "accounts"))
	}
	return words.JoinWithAnd(parts)
}

// RefusedLinks returns the refused links as text, one a line.
func (p trackPage) RefusedLinks() string {
	var links []string
	for _, r := range p.Results {
		if r.ID == "" {
			links = append(links, r.Link)
		}
	}
	return strings.Join(links, "\n")
}
