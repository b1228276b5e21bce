package instagram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

const (
	postFields      = "id,shortcode,caption,comments_count,like_count,media_type,media_product_type,permalink,timestamp"
	ownFields       = postFields + ",thumbnail_url"
	discoveryFields = postFields + ",view_count" // only business discovery returns view_count, and only for reels
	// A post's code contains an upload time. The post's timestamp can be earlier than this time by at most codeMargin.
	codeMargin = time.Hour
)

// In Meta's errors, code 110 means a missing or personal account. Code 100 with subcode 33 means that
// the operator's account cannot be loaded.
var (
	accountErrors    = graph.ErrorClasses{{Main: 110}: source.Unsupported, {Main: 100, Sub: 33}: source.AuthFailed}
	ownAccountErrors = graph.ErrorClasses{{Main: 100, Sub: 33}: source.AuthFailed}
)

// profile is the profile of an account in the format of the Graph API.
type profile struct {
	ID        fetch.ID               `json:"id"`
	Username  *string                `json:"username"`
	Name      fetch.Optional[string] `json:"name"`
	Biography fetch.Optional[string] `json:"biography"`
	Followers fetch.Count            `json:"followers_count"`
	Follows   fetch.Count            `json:"follows_count"`
	Posts     fetch.Count            `json:"media_count"`
}

// sourceID returns the account's Graph API id with the prefix "instagram/", or nil if the id is
// missing or malformed.
func (p profile) sourceID() *string {
	if !accountNum.MatchString(string(p.ID)) {
		return nil
	}
	// The prefix is needed because Instagram's site and vendors use other ids.
	return new(Name + "/" + string(p.ID))
}

// page is one page of an account's list of posts, newest first, with the profile of the account.
type page struct {
	profile
	posts   []post
	broken  bool   // true if a post has no code, or if the answer has no list
	after   string // the cursor of the next page; "" on the last page
	size    int    // the number of posts that were requested
	sandbox bool
}

// post is a post in an account's list. Its code and its upload time are decoded immediately. Its counts are decoded later, by readPosts.
type post struct {
	code     string
	uploaded *time.Time
	raw      json.RawMessage // the whole post as JSON
}

// fetchDiscovery requests the profile of another account and one page of its posts, with Meta's "business discovery". The cursor selects
// the page; "" is the cursor of the first page.
func (s *Source) fetchDiscovery(ctx context.Context, budget *source.CallBudget, handle, profileFields, cursor string) (page, error) {
	if cursor != "" {
		cursor = ".after(" + cursor + ")"
	}
	res, size, err := s.Client.GetPage(handle, pageSize, func(limit int) (graph.Answer, error) {
		query := fmt.Sprintf("business_discovery.username(%s){%s,media%s.limit(%d){%s}}", handle, profileFields, cursor, limit, discoveryFields)
		return s.Client.Get(ctx, budget, s.own.id, accountErrors, "fields", query)
	})
	if err != nil {
		return page{}, err
	}
	var answer struct {
		Discovery *struct {
			profile
			Media *graph.List `json:"media"`
		} `json:"business_discovery"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer.Discovery == nil {
		return page{}, graph.ErrFormat
	}
	d := answer.Discovery
	if given := fetch.ParseHandle(d.Username); given == nil || *given != handle {
		return page{}, &source.Failure{Class: source.Temporary, Detail: "the answer has an account that was not requested"}
	}
	p := page{profile: d.profile, size: size, sandbox: res.Sandbox}
	switch {
	case d.Media == nil: // nil if the account has no posts, or if the list is missing from the answer
		p.broken = d.Posts.Value() != nil && *d.Posts.Value() > 0
	case d.Media.Data == nil:
		return page{}, graph.ErrFormat
	default:
		p.addPosts(d.Media, false, s.now())
	}
	return p, nil
}

// fetchOwnPage requests one page of posts of the operator's account. The cursor selects the page; "" is the cursor of the first page.
func (s *Source) fetchOwnPage(ctx context.Context, budget *source.CallBudget, cursor string) (page, error) {
	res, size, err := s.Client.GetPage("", pageSize, func(limit int) (graph.Answer, error) {
		parameters := []string{"fields", ownFields, "limit", fmt.Sprint(limit)}
		if cursor != "" {
			parameters = append(parameters, "after", cursor)
		}
		return s.Client.Get(ctx, budget, s.own.id+"/media", ownAccountErrors, parameters...)
	})
	if err != nil {
		return page{}, err
	}
	var answer graph.List
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return page{}, graph.ErrFormat
	}
	p := page{size: size, sandbox: res.Sandbox}
	p.addPosts(&answer, true, s.now())
	return p, nil
}

// addPosts adds the posts of a list to the page. topLevel is false if the list is only a part of the
// requested object.
func (p *page) addPosts(l *graph.List, topLevel bool, now time.Time) {
	p.after = l.NextCursor(topLevel)
	for _, raw := range *l.Data {
		var item struct {
			Shortcode fetch.ID               `json:"shortcode"`
			Permalink fetch.Optional[string] `json:"permalink"`
			Timestamp fetch.Optional[string] `json:"timestamp"`
		}
		if json.Unmarshal(raw, &item) != nil {
			p.broken = true
			continue
		}
		code := validCode(string(item.Shortcode), item.Permalink.Value())
		if code == "" {
			p.broken = true
			continue
		}
		p.posts = append(p.posts, post{code: code, uploaded: graph.ParseTime(item.Timestamp.Value(), now), raw: raw})
	}
}

// validCode returns `code`, or the permalink's code if `code` is "". It returns "" if the result is
// invalid or the two codes differ.
func validCode(code string, permalink *string) string {
	if permalink != nil {
		if l, err := link.Parse(*permalink); err == nil && l.Kind == link.Video && l.Platform == link.Instagram {
			if code != "" && code != l.ID {
				return ""
			}
			return l.ID
		}
	}
	l, err := link.Parse("https://www.instagram.com/p/" + code + "/")
	if err != nil || l.Kind != link.Video {
		return ""
	}
	return l.ID
}

// findPosts searches an account's list of posts for the given codes, and returns a result for each code. If
// `handle` is "", it searches the operator's own account. It may request more pages than the one for which Plan reserves a call.
func (s *Source) findPosts(ctx context.Context, budget *source.CallBudget, handle string, codes []string, ownProfile profile) (map[string]source.Result, error) {
	found := make(map[string]source.Result, len(codes))
	missing := slices.Clone(codes)
	var p page
	var refused *graph.TargetError // Meta's refusal of the list, or nil
	complete := false              // true if no further page can have a missing post
	broken := false                // true if a page has a post without a code
	cursor := ""
	for searched := 0; searched < maxPages*pageSize && len(missing) > 0 && !complete; searched += p.size {
		var err error
		if handle == "" {
			p, err = s.fetchOwnPage(ctx, budget, cursor)
			p.profile = ownProfile
		} else {
			p, err = s.fetchDiscovery(ctx, budget, handle, "id,username,name,media_count", cursor)
		}
		if e, ok := graph.AsTargetError(err); ok {
			refused = e
			break
		}
		if err != nil {
			return nil, err
		}
		results, mediaIDs := p.readPosts(missing)
		for _, code := range missing {
			r, ok := results[code]
			if !ok {
				continue
			}
			if handle == "" && r.Class == source.OK {
				if r, err = s.addInsights(ctx, budget, mediaIDs[code], r.Facts); err != nil {
					return nil, err
				}
			}
			r.Sandbox = p.sandbox
			found[code] = r
		}
		missing = slices.DeleteFunc(missing, func(code string) bool { return found[code].Class != "" })
		broken = broken || p.broken
		complete = p.after == "" || p.after == cursor || p.isOlderThan(missing)
		cursor = p.after
	}
	notFound := source.Result{Sandbox: p.sandbox}
	switch {
	case refused != nil:
		notFound = refused.Result()
	case complete && broken:
		notFound.Class, notFound.Detail = source.Temporary, "not in the account's list, but the list is malformed"
	case complete:
		// The video may also be a joint post that only another account lists.
		notFound.Class, notFound.Detail = source.Missing, "not in the account's list: the video is deleted or archived, or belongs to another account"
	default:
		notFound.Class, notFound.Detail = source.Unsupported, fmt.Sprintf("not among the newest %d posts of its account; older posts are not searched", maxPages*pageSize)
	}
	for _, code := range missing {
		found[code] = notFound
	}
	return found, nil
}

// isOlderThan returns true if every post of the page is older than all posts with the given codes.
func (p page) isOlderThan(codes []string) bool {
	if len(p.posts) == 0 {
		return false
	}
	var oldest time.Time
	for _, code := range codes {
		at, ok := link.UploadTime(link.Link{Platform: link.Instagram, Kind: link.Video, ID: code})
		if !ok {
			return false
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	// The posts are not always in the order of their times, because the first ones can be pinned. So check the
	// time of each post.
	return !slices.ContainsFunc(p.posts, func(item post) bool { return item.uploaded == nil || !item.uploaded.Before(oldest.Add(-codeMargin)) })
}

// postFacts has the fields of a post of the Graph API from which readFacts makes a result.
type postFacts struct {
	ID       fetch.ID               `json:"id"`
	Caption  fetch.Optional[string] `json:"caption"`
	Likes    fetch.Count            `json:"like_count"`
	Comments fetch.Count            `json:"comments_count"`
	Views    fetch.Count            `json:"view_count"`
	// ThumbnailURL is set only for posts of the operator's account. For other posts, Instagram returns no thumbnail of a video.
	ThumbnailURL fetch.Optional[string] `json:"thumbnail_url"`
}

// readPosts returns the results for the posts of the page that have one of the given codes, and their Graph API ids. Both maps have the
// codes as keys.
func (p page) readPosts(codes []string) (results map[string]source.Result, mediaIDs map[string]string) {
	results, mediaIDs = map[string]source.Result{}, map[string]string{}
	for _, item := range p.posts {
		if slices.Contains(codes, item.code) {
			mediaID, r := p.readFacts(item)
			source.AddResult(results, item.code, r)
			mediaIDs[item.code] = mediaID
		}
	}
	return results, mediaIDs
}

// readFacts returns a post's Graph API id and a result. If the post is malformed or has no counts, the id is "" and the result has the class
// Temporary.
func (p page) readFacts(item post) (mediaID string, r source.Result) {
	var c postFacts
	switch err := json.Unmarshal(item.raw, &c); {
	case err != nil:
		return "", source.Result{Class: source.Temporary, Detail: "the post has a JSON field of the wrong type"}
	case c.Likes.Invalid() || c.Comments.Invalid() || c.Views.Invalid():
		return "", source.Result{Class: source.Temporary, Detail: "the post has an invalid count"}
	case c.Likes.Value() == nil && c.Comments.Value() == nil && c.Views.Value() == nil:
		return "", source.Result{Class: source.Temporary, Detail: "the post has no counts"}
	}
	return string(c.ID), source.Result{Class: source.OK, Facts: &source.Facts{
		Views: c.Views.Value(), Likes: c.Likes.Value(), Comments: c.Comments.Value(), HiddenStats: new(c.Likes.Value() == nil),
		Title: fetch.CleanText(c.Caption.Value()), Username: fetch.ParseHandle(p.Username), AccountName: fetch.CleanName(p.Name.Value()),
		AccountSourceID: p.sourceID(), UploadedAt: item.uploaded, Private: new(false), ThumbnailURL: fetch.ParseLink(c.ThumbnailURL.Value()),
	}}
}
