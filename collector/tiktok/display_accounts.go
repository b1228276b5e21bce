package tiktok

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// profileScopes are the OAuth scopes (permissions) that the owner of the account can refuse to grant. Each entry also has the profile
// fields that need the scope.
var profileScopes = []struct{ scope, fields string }{
	{"user.info.profile", "username,bio_description"},
	{"user.info.stats", "follower_count,following_count"},
}

// wantedPages returns the number of full pages that t.Depth videos need. It is at least 1, because
// the first page shows whether there are new videos.
func wantedPages(t queue.Target) int64 {
	return int64(max(1, (t.Depth+displayBatch-1)/displayBatch))
}

// maxPages returns the maximum number of pages to request. It is larger than wantedPages, because a
// page can be short although more pages follow.
func maxPages(t queue.Target) int64 { return wantedPages(t) + wantedPages(t)/10 + 2 }

// fetchAccount requests the profile of the logged-in account, and then the videos. If the target is
// another account, the result is Unsupported.
func (d *Display) fetchAccount(ctx context.Context, budget *source.CallBudget, t queue.Target) (source.Result, error) {
	handle := handleOf(t)
	if handle == "" || t.Platform != link.TikTok {
		return source.Result{Class: source.Unsupported, Detail: "the target is not a TikTok account, or its handle is not known"}, nil
	}
	r, err := d.fetchProfile(ctx, budget)
	switch {
	case err != nil || r.Class != source.OK:
		return r, err
	case r.Account.Username == nil:
		return source.Result{Class: source.Unsupported, Detail: "the handle of the account that has logged in is not known, because the scope user.info.profile is missing"}, nil
	case *r.Account.Username != handle && (t.SourceID == "" || r.Account.SourceID == nil || *r.Account.SourceID != t.SourceID):
		return source.Result{Class: source.Unsupported, Detail: "another account than the one that has logged in"}, nil
	}
	return d.addVideos(ctx, budget, t, r)
}

// fetchProfile requests the profile of the logged-in account, and caches the handle and the id of the account.
func (d *Display) fetchProfile(ctx context.Context, budget *source.CallBudget) (source.Result, error) {
	// The access token is requested first, because TikTok's answer with the token contains the granted scopes.
	if _, err := d.tokens.token(ctx, ""); err != nil {
		return source.Result{}, err
	}
	fields := []string{"open_id", "display_name"}
	withUsername := false
	for _, p := range profileScopes {
		if d.tokens.hasScope(ctx, p.scope) {
			fields = append(fields, p.fields)
			withUsername = withUsername || p.scope == "user.info.profile"
		}
	}
	got, err := d.callWithToken(ctx, budget, d.tokens, request{path: "v2/user/info/", fields: strings.Join(fields, ",")})
	if err != nil {
		return source.Result{}, err
	}
	r := decodeUser(got, withUsername)
	if r.Class == source.OK {
		if r.Account.SourceID != nil { // the id is prefixed with the key of the app, because TikTok returns a different id to each app
			*r.Account.SourceID = DisplayName + ":" + d.key + "/" + *r.Account.SourceID
		}
		d.rememberAccount(r.Account)
	}
	return r, nil
}

// decodeUser decodes the profile in an answer. If needsUsername is true, the handle was requested and must be in the answer.
func decodeUser(a answer, needsUsername bool) source.Result {
	var data struct {
		User *struct {
			OpenID      fetch.ID               `json:"open_id"`
			Username    fetch.Optional[string] `json:"username"`
			DisplayName fetch.Optional[string] `json:"display_name"`
			Bio         fetch.Optional[string] `json:"bio_description"`
			Followers   fetch.Count            `json:"follower_count"`
			Following   fetch.Count            `json:"following_count"`
		} `json:"user"`
	}
	temporary := func(why string) source.Result {
		return source.Result{Class: source.Temporary, Detail: why, Sandbox: a.sandbox}
	}
	if json.Unmarshal(a.data, &data) != nil || data.User == nil {
		return temporary(errFormat.Error())
	}
	u := data.User
	f := &source.AccountFacts{Username: fetch.ParseHandle(u.Username.Value()), Name: fetch.CleanName(u.DisplayName.Value()), Bio: fetch.CleanName(u.Bio.Value()),
		Followers: u.Followers.Value(), Following: u.Following.Value()}
	if u.OpenID != "" && !strings.Contains(string(u.OpenID), "/") {
		f.SourceID = new(string(u.OpenID))
	}
	switch {
	case u.Followers.Invalid() || u.Following.Invalid():
		return temporary("the profile has an invalid count")
	case needsUsername && f.Username == nil:
		return temporary("the profile has no handle")
	}
	return source.Result{Class: source.OK, Account: f, Sandbox: a.sandbox}
}

// addVideos adds the newest videos of the logged-in account to r. If t.Depth videos need more than
// maxPages(t) pages, the result has the class Temporary.
func (d *Display) addVideos(ctx context.Context, budget *source.CallBudget, t queue.Target, r source.Result) (source.Result, error) {
	seen := map[string]bool{}
	body := struct {
		MaxCount int    `json:"max_count"`
		Cursor   *int64 `json:"cursor,omitempty"`
	}{MaxCount: displayBatch}
	wanted := max(t.Depth, 1)
	for i := range maxPages(t) {
		got, err := d.callWithToken(ctx, budget, d.tokens, request{path: "v2/video/list/", fields: "id,create_time,share_url", body: body})
		if err != nil {
			return source.Result{}, err
		}
		page, ok := decodeList(got, *r.Account.Username, d.now())
		if !ok {
			return source.Result{Class: source.Temporary, Detail: errFormat.Error(), Sandbox: r.Sandbox}, nil
		}
		added := 0
		for _, v := range page.videos {
			if !seen[v.ID] {
				seen[v.ID] = true
				r.Account.Videos = append(r.Account.Videos, v)
				added++
			}
		}
		sameCursor := body.Cursor != nil && page.cursor != nil && *body.Cursor == *page.cursor
		r.Account.ListContinues = page.more && page.cursor != nil && !sameCursor && (added > 0 || len(page.videos) == 0)
		outOfBudget := i+1 < maxPages(t) && budget.Exhausted() && len(r.Account.Videos) > 0
		// Stop at the list's end, at the wanted number of videos, or when the budget is spent.
		if !r.Account.ListContinues || len(r.Account.Videos) >= wanted || outOfBudget {
			r.Account.Listed = true
			r.Account.Unfinished = r.Account.ListContinues && outOfBudget && budget.EndedEarly(d.budget)
			return r, nil
		}
		body.Cursor = page.cursor
	}
	return source.Result{Class: source.Temporary, Detail: "TikTok's pages are so short that the list cannot be read to its end", Sandbox: r.Sandbox}, nil
}

// list is one page of an account's videos.
type list struct {
	videos []ingest.FoundVideo
	cursor *int64
	more   bool
}

// decodeList decodes a page of videos. It leaves out malformed videos. It returns false if the
// answer has no valid list, or only malformed videos.
func decodeList(a answer, username string, now time.Time) (list, bool) {
	var data struct {
		Videos *fetch.Items `json:"videos"` // nil if the answer has no list
		Cursor fetch.Number `json:"cursor"` // a time in milliseconds
		More   bool         `json:"has_more"`
	}
	if json.Unmarshal(a.data, &data) != nil || data.Videos == nil || data.Cursor.Invalid() {
		return list{}, false
	}
	page := list{cursor: data.Cursor.Value(), more: data.More}
	for _, raw := range *data.Videos {
		var item video
		if json.Unmarshal(raw, &item) != nil || !videoID.MatchString(string(item.ID)) {
			continue
		}
		found := ingest.FoundVideo{ID: string(item.ID), Link: link.AccountURL(link.TikTok, username) + "/video/" + string(item.ID)}
		if l, ok := item.shareLink(); ok && l.ID == found.ID && l.Handle == username {
			found.Link = l.Canonical // the link in the answer is used, because links of photo posts differ from links of videos
		}
		if at := item.CreateTime.Value(); at != nil {
			if uploaded := fetch.CheckUploadTime(time.Unix(*at, 0), now); uploaded != nil {
				found.UploadedAt = new(store.InstantOf(*uploaded))
			}
		}
		page.videos = append(page.videos, found)
	}
	return page, len(page.videos) > 0 || len(*data.Videos) == 0
}
