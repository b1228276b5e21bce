package tiktok

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

// The scopes that the account's owner may have left out, and the fields that need them.
var profileScopes = []struct{ scope, fields string }{
	{"user.info.profile", "username,bio_description"},
	{"user.info.stats", "follower_count,following_count"},
}

// pages is how many full pages hold the videos that are wanted. The first is always asked for: it shows what is new.
func pages(t collector.Target) int64 {
	return int64(max(1, (t.Depth+displayBatch-1)/displayBatch))
}

// maxPages is how many pages are asked for at the most: a page may be short, or empty, though there are more.
func maxPages(t collector.Target) int64 { return pages(t) + pages(t)/10 + 2 }

// fetchAccount asks for the profile and, when it is the target's, by its name or by the id that TikTok gave the operator's app for it, for the list of its videos.
func (d *Display) fetchAccount(ctx context.Context, t collector.Target) (collector.Result, error) {
	handle := handleOf(t)
	if handle == "" || t.Platform != link.TikTok {
		return collector.Result{Class: collector.Unsupported, Detail: "not a TikTok account with a handle"}, nil
	}
	r, err := d.profile(ctx)
	switch {
	case err != nil || r.Class != collector.OK:
		return r, err
	case r.Account.Username == nil:
		return collector.Result{Class: collector.Unsupported, Detail: "the account that has logged in does not tell its name: the scope user.info.profile is missing"}, nil
	case *r.Account.Username != handle && (t.SourceID == "" || r.Account.SourceID == nil || *r.Account.SourceID != t.SourceID):
		return collector.Result{Class: collector.Unsupported, Detail: "another account than the one that has logged in"}, nil
	}
	return d.addVideos(ctx, t, r)
}

// profile asks for the account that has logged in, and learns its name.
func (d *Display) profile(ctx context.Context) (collector.Result, error) {
	// The first token says which scopes there are.
	if _, err := d.tokens.token(ctx, ""); err != nil {
		return collector.Result{}, err
	}
	fields := []string{"open_id", "display_name"}
	named := false
	for _, p := range profileScopes {
		if d.tokens.granted(ctx, p.scope) {
			fields = append(fields, p.fields)
			named = named || p.scope == "user.info.profile"
		}
	}
	got, err := d.ask(ctx, d.tokens, request{path: "v2/user/info/", fields: strings.Join(fields, ",")})
	if err != nil {
		return collector.Result{}, err
	}
	r := decodeUser(got, named)
	if r.Class == collector.OK {
		if r.Account.SourceID != nil { // TikTok's id is of one app
			*r.Account.SourceID = DisplayName + ":" + d.key + "/" + *r.Account.SourceID
		}
		d.learn(r.Account)
	}
	return r, nil
}

func decodeUser(a answer, named bool) collector.Result {
	var data struct {
		User *struct {
			OpenID      fetch.ID    `json:"open_id"`
			Username    *string     `json:"username"`
			DisplayName *string     `json:"display_name"`
			Bio         *string     `json:"bio_description"`
			Followers   fetch.Count `json:"follower_count"`
			Following   fetch.Count `json:"following_count"`
		} `json:"user"`
	}
	wrong := func(why string) collector.Result {
		return collector.Result{Class: collector.Temporary, Detail: why, Sandbox: a.sandbox}
	}
	if json.Unmarshal(a.data, &data) != nil || data.User == nil {
		return wrong(errShape.Error())
	}
	u := data.User
	f := &collector.AccountFacts{Username: fetch.Handle(u.Username), Name: fetch.Name(u.DisplayName), Bio: fetch.Name(u.Bio),
		Followers: u.Followers.Value(), Following: u.Following.Value()}
	if u.OpenID != "" && !strings.Contains(string(u.OpenID), "/") {
		f.SourceID = new(string(u.OpenID))
	}
	switch {
	case u.Followers.Wrong() || u.Following.Wrong():
		return wrong("the profile has a count that is no whole number")
	case named && f.Username == nil:
		return wrong("the profile has no name")
	}
	return collector.Result{Class: collector.OK, Account: f, Sandbox: a.sandbox}
}

// addVideos adds the account's newest videos to its profile, as many pages as the depth takes.
func (d *Display) addVideos(ctx context.Context, t collector.Target, r collector.Result) (collector.Result, error) {
	seen := map[string]bool{}
	body := struct {
		MaxCount int    `json:"max_count"`
		Cursor   *int64 `json:"cursor,omitempty"`
	}{MaxCount: displayBatch}
	wanted := max(t.Depth, 1)
	for i := range maxPages(t) {
		got, err := d.ask(ctx, d.tokens, request{path: "v2/video/list/", fields: "id,create_time,share_url", body: body})
		if err != nil {
			return collector.Result{}, err
		}
		page, ok := decodeList(got, *r.Account.Username, d.now())
		if !ok {
			return collector.Result{Class: collector.Temporary, Detail: errShape.Error()}, nil
		}
		fresh := 0
		for _, v := range page.videos {
			if !seen[v.ID] {
				seen[v.ID] = true
				r.Account.Videos = append(r.Account.Videos, v)
				fresh++
			}
		}
		again := body.Cursor != nil && page.cursor != nil && *body.Cursor == *page.cursor
		if !page.more || page.cursor == nil || again || len(r.Account.Videos) >= wanted || len(page.videos) > 0 && fresh == 0 ||
			i+1 < maxPages(t) && collector.SpentUp(ctx) && len(r.Account.Videos) > 0 {
			r.Account.Listed = true
			return r, nil
		}
		body.Cursor = page.cursor
	}
	return collector.Result{Class: collector.Temporary, Detail: "TikTok's pages are shorter than the list can be read with"}, nil
}

// list is a page of an account's videos.
type list struct {
	videos []ingest.FoundVideo
	cursor *int64
	more   bool
}

// decodeList is false for a page of which nothing can be understood. A broken item is left out.
func decodeList(a answer, username string, now time.Time) (list, bool) {
	var data struct {
		Videos *fetch.Items `json:"videos"` // nil when there is none, not even an empty one
		Cursor fetch.Count  `json:"cursor"`
		More   bool         `json:"has_more"`
	}
	if json.Unmarshal(a.data, &data) != nil || data.Videos == nil || data.Cursor.Wrong() {
		return list{}, false
	}
	page := list{cursor: data.Cursor.Value(), more: data.More}
	for _, raw := range *data.Videos {
		var item struct {
			ID         fetch.ID    `json:"id"`
			CreateTime fetch.Count `json:"create_time"`
			ShareURL   *string     `json:"share_url"`
		}
		if json.Unmarshal(raw, &item) != nil || !videoID.MatchString(string(item.ID)) {
			continue
		}
		found := ingest.FoundVideo{ID: string(item.ID), Link: link.AccountURL(link.TikTok, username) + "/video/" + string(item.ID)}
		if l, ok := (video{ShareURL: item.ShareURL}).shared(); ok && l.ID == found.ID && l.Handle == username {
			found.Link = l.Canonical // which knows a photo from a video
		}
		if at := item.CreateTime.Value(); at != nil {
			if uploaded := fetch.UploadTime(time.Unix(*at, 0), now); uploaded != nil {
				found.UploadedAt = new(store.InstantOf(*uploaded))
			}
		}
		page.videos = append(page.videos, found)
	}
	return page, len(page.videos) > 0 || len(*data.Videos) == 0
}
