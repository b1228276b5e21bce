package instagram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
)

const (
	postFields     = "id,shortcode,caption,comments_count,like_count,media_type,media_product_type,permalink,timestamp"
	strangerFields = postFields + ",view_count" // of a reel, and by business discovery alone
	// idAhead is by how much a post may be dated before the time in its code; a draft is dated after it.
	idAhead = time.Hour
)

// The errors that concern one account. A personal account and one that is not there are not told apart.
// What cannot be loaded at all is the own account, through which everything is asked.
var (
	noAccount    = graph.Verdicts{{Main: 110}: collector.Unsupported, {Main: 100, Sub: 33}: collector.AuthFailed}
	noOwnAccount = graph.Verdicts{{Main: 100, Sub: 33}: collector.AuthFailed}
)

// profile is an account as business discovery gives it.
type profile struct {
	ID        fetch.ID    `json:"id"`
	Username  *string     `json:"username"`
	Name      *string     `json:"name"`
	Biography *string     `json:"biography"`
	Followers fetch.Count `json:"followers_count"`
	Follows   fetch.Count `json:"follows_count"`
	Posts     fetch.Count `json:"media_count"`
}

// sourceID is the account's id in the Graph API, which is another than the one that Instagram itself and vendors have.
func (p profile) sourceID() *string {
	if !accountNum.MatchString(string(p.ID)) {
		return nil
	}
	return new(Name + "/" + string(p.ID))
}

// page is a part of an account's list of posts, newest first.
type page struct {
	profile
	posts   []post
	broken  bool   // some post has no code, or all are left out
	after   string // "" on the last page
	sandbox bool
}

// post is an item of a list, by its code, with its fields still to be read.
type post struct {
	code     string
	uploaded *time.Time
	raw      json.RawMessage
}

// askStranger asks by business discovery for fields of an account and a page of its list.
func (s *Source) askStranger(ctx context.Context, name, fields, after string) (page, error) {
	if after != "" {
		after = ".after(" + after + ")"
	}
	ask := fmt.Sprintf("business_discovery.username(%s){%s,media%s.limit(%d){%s}}", name, fields, after, pageSize, strangerFields)
	res, err := s.graph.Get(ctx, s.own.id, noAccount, "fields", ask)
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
		return page{}, graph.ErrShape
	}
	d := answer.Discovery
	if given := fetch.Handle(d.Username); given == nil || *given != name {
		return page{}, &collector.Failure{Class: collector.Temporary, Detail: "an answer with an account that nobody asked for"}
	}
	p := page{profile: d.profile, sandbox: res.Sandbox}
	switch {
	case d.Media == nil: // there are no posts, or it forgot them
		p.broken = d.Posts.Value() != nil && *d.Posts.Value() > 0
	case d.Media.Data == nil:
		return page{}, graph.ErrShape
	default:
		p.take(d.Media, false, s.now())
	}
	return p, nil
}

// askOwn asks for a page of the own account's list.
func (s *Source) askOwn(ctx context.Context, after string) (page, error) {
	parameters := []string{"fields", postFields, "limit", fmt.Sprint(pageSize)}
	if after != "" {
		parameters = append(parameters, "after", after)
	}
	res, err := s.graph.Get(ctx, s.own.id+"/media", noOwnAccount, parameters...)
	if err != nil {
		return page{}, err
	}
	var answer graph.List
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return page{}, graph.ErrShape
	}
	p := page{sandbox: res.Sandbox}
	p.take(&answer, true, s.now())
	return p, nil
}

// take reads the codes of a list's items.
func (p *page) take(l *graph.List, itself bool, now time.Time) {
	p.after = l.After(itself)
	for _, raw := range *l.Data {
		var item struct {
			Shortcode fetch.ID `json:"shortcode"`
			Permalink *string  `json:"permalink"`
			Timestamp *string  `json:"timestamp"`
		}
		if json.Unmarshal(raw, &item) != nil {
			p.broken = true
			continue
		}
		code := codeOf(string(item.Shortcode), item.Permalink)
		if code == "" {
			p.broken = true
			continue
		}
		p.posts = append(p.posts, post{code: code, uploaded: graph.Time(item.Timestamp, now), raw: raw})
	}
}

// codeOf is a post's code as its links have it, "" when the post names none, or names another in its link.
func codeOf(code string, permalink *string) string {
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

// find looks codes up in an account's list, that of the own account, self, when the handle is "".
func (s *Source) find(ctx context.Context, name string, codes []string, self profile) (map[string]collector.Result, error) {
	found := make(map[string]collector.Result, len(codes))
	missing := slices.Clone(codes)
	rest := collector.Result{Class: collector.Unsupported, Detail: fmt.Sprintf("not among the newest %d posts of its account, beyond which Instagram is not asked", maxPages*pageSize)}
	after, broken := "", false
	for range maxPages {
		var p page
		var err error
		if name == "" {
			p, err = s.askOwn(ctx, after)
			p.profile = self
		} else {
			p, err = s.askStranger(ctx, name, "id,username,name,media_count", after)
		}
		if refusal, ok := graph.AsRefusal(err); ok {
			rest = refusal.Result()
			break
		}
		if err != nil {
			return nil, err
		}
		rest.Sandbox = p.sandbox
		broken = broken || p.broken
		for _, item := range p.posts {
			if !slices.Contains(missing, item.code) {
				continue
			}
			r, err := s.read(ctx, name, p, item)
			if err != nil {
				return nil, err
			}
			r.Sandbox = p.sandbox
			found[item.code] = r
			missing = slices.DeleteFunc(missing, func(code string) bool { return code == item.code })
		}
		if len(missing) == 0 {
			break
		}
		if p.after == "" || p.after == after || p.isBehind(missing) {
			rest.Class, rest.Detail = collector.Missing, "the account's list does not show it: deleted, archived, or another account's"
			break
		}
		after = p.after
	}
	if broken && rest.Class == collector.Missing {
		rest.Class, rest.Detail = collector.Temporary, "left out of a list that is broken itself"
	}
	for _, code := range missing {
		found[code] = rest
	}
	return found, nil
}

// isBehind says whether all of a page is older than all of the codes can be: their upload stands in them. A post that is
// pinned on top may be older than what follows, so that all of the page counts.
func (p page) isBehind(codes []string) bool {
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
	return !slices.ContainsFunc(p.posts, func(item post) bool { return item.uploaded == nil || !item.uploaded.Before(oldest.Add(-idAhead)) })
}

// counts are a post's fields.
type counts struct {
	ID       fetch.ID    `json:"id"`
	Caption  *string     `json:"caption"`
	Likes    fetch.Count `json:"like_count"`
	Comments fetch.Count `json:"comments_count"`
	Views    fetch.Count `json:"view_count"`
}

// read reads a post that was looked for, and asks for its insights where it is the own account's.
func (s *Source) read(ctx context.Context, name string, p page, item post) (collector.Result, error) {
	mediaID, r := p.facts(item)
	if name != "" || r.Class != collector.OK {
		return r, nil
	}
	return s.addInsights(ctx, mediaID, r.Facts)
}

// facts are what a list says of a post, and the post's id in the API.
func (p page) facts(item post) (mediaID string, r collector.Result) {
	var c counts
	switch err := json.Unmarshal(item.raw, &c); {
	case err != nil:
		return "", collector.Result{Class: collector.Temporary, Detail: "the post has a member of the wrong type"}
	case c.Likes.Wrong() || c.Comments.Wrong() || c.Views.Wrong():
		return "", collector.Result{Class: collector.Temporary, Detail: "the post has a count that is no whole number"}
	case c.Likes.Value() == nil && c.Comments.Value() == nil && c.Views.Value() == nil:
		return "", collector.Result{Class: collector.Temporary, Detail: "the post has no counts"}
	}
	return string(c.ID), collector.Result{Class: collector.OK, Facts: &collector.Facts{
		Views: c.Views.Value(), Likes: c.Likes.Value(), Comments: c.Comments.Value(), HiddenStats: new(c.Likes.Value() == nil),
		Title: fetch.Text(c.Caption), Username: fetch.Handle(p.Username), AccountName: fetch.Name(p.Name),
		AccountSourceID: p.sourceID(), UploadedAt: item.uploaded, Private: new(false),
	}}
}

// The metrics of a post's insights that are asked for. One that the platform has retired fails the whole call.
const (
	metricViews  = "views"
	metricShares = "shares"
	metricSaved  = "saved"
)

// noInsights are the errors of a post that has none: it is from before the account was a professional one, hardly anybody
// has seen it yet, or it was deleted at this moment.
var noInsights = graph.Verdicts{{Main: 100, Sub: 2108006}: collector.Missing, {Main: 10}: collector.Missing, {Main: 100, Sub: 33}: collector.Missing}

const notEnoughViewers = "not enough viewers"

// addInsights adds what the platform tells of the own account's posts alone. What it does not have yet stays null.
func (s *Source) addInsights(ctx context.Context, mediaID string, f *collector.Facts) (collector.Result, error) {
	if !accountNum.MatchString(mediaID) {
		return collector.Result{Class: collector.Temporary, Detail: "the post has no id by which its insights could be asked for"}, nil
	}
	res, err := s.graph.Get(ctx, mediaID+"/insights", noInsights, "metric", metricViews+","+metricShares+","+metricSaved)
	if refusal, ok := graph.AsRefusal(err); ok {
		if strings.Contains(refusal.Detail, "code 10/") && !strings.Contains(strings.ToLower(refusal.Detail), notEnoughViewers) {
			return collector.Result{}, &collector.Failure{Class: collector.AuthFailed, Detail: "insights: " + refusal.Detail}
		}
		return collector.Result{Class: collector.OK, Facts: f, Detail: "no insights: " + refusal.Detail}, nil
	}
	if err != nil {
		return collector.Result{}, err
	}
	var answer struct {
		Data []struct {
			Name   string `json:"name"`
			Values []struct {
				Value fetch.Count `json:"value"`
			} `json:"values"`
		} `json:"data"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return collector.Result{}, graph.ErrShape
	}
	for _, metric := range answer.Data {
		into, ok := map[string]**int64{metricViews: &f.Views, metricShares: &f.Shares, metricSaved: &f.Bookmarks}[metric.Name]
		if !ok || len(metric.Values) == 0 {
			continue
		}
		if metric.Values[0].Value.Wrong() {
			return collector.Result{Class: collector.Temporary, Detail: "the insights have a count that is no whole number"}, nil
		}
		*into = metric.Values[0].Value.Value()
	}
	return collector.Result{Class: collector.OK, Facts: f}, nil
}

// whoAmI is the own account, by whose handle its posts are told from others'. Who had to wait while another asked in vain shares
// the failure: one after the other they would wait for each other's timeouts.
func (s *Source) whoAmI(ctx context.Context) (profile, error) {
	tries := s.own.tries.Load()
	select {
	case s.own.turn <- struct{}{}:
		defer func() { <-s.own.turn }()
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return profile{}, fmt.Errorf("the call was abandoned: %w", context.Canceled)
		}
		return profile{}, &collector.Failure{Class: collector.Temporary, Cause: fetch.ErrTimeout, Detail: "the own account was not told before the caller's deadline"}
	}
	now := s.now()
	if s.own.self.Username != nil && now.Sub(s.own.at) < ownTTL {
		return s.own.self, nil
	}
	if failure := (*collector.Failure)(nil); s.own.tries.Load() > tries && errors.As(s.own.err, &failure) {
		return profile{}, s.own.err
	}
	self, err := s.askSelf(ctx)
	s.own.err = err
	s.own.tries.Add(1)
	if err != nil {
		return profile{}, err
	}
	s.own.self, s.own.at = self, now
	return self, nil
}

func (s *Source) askSelf(ctx context.Context) (profile, error) {
	res, err := s.graph.Get(ctx, s.own.id, noOwnAccount, "fields", "id,username,name")
	if err != nil {
		return profile{}, err
	}
	var self profile
	if json.Unmarshal(res.Body, &self) != nil || fetch.Handle(self.Username) == nil {
		return profile{}, graph.ErrShape
	}
	return self, nil
}

// listPages is how many pages of an account's list are asked for at the most to find so many videos: of many an account most
// posts are photos.
func listPages(depth int) int { return min(4*max(1, (depth+pageSize-1)/pageSize), 200) }

// fetchAccount asks for an account's profile and its newest videos, which come together.
func (s *Source) fetchAccount(ctx context.Context, t collector.Target) (collector.Result, error) {
	r := collector.Result{Class: collector.OK}
	after := ""
	seen := map[string]bool{}
	for i := range listPages(t.Depth) {
		fields := "id,username"
		if i == 0 {
			fields = "id,username,name,biography,followers_count,follows_count,media_count"
		}
		p, err := s.askStranger(ctx, t.Handle, fields, after)
		if refusal, ok := graph.AsRefusal(err); ok {
			if i > 0 {
				return collector.Result{Class: collector.Temporary, Detail: "the list breaks off: " + refusal.Detail, Sandbox: refusal.Sandbox}, nil
			}
			r := refusal.Result()
			if r.Class == collector.Unsupported && t.SourceID != "" { // it was there
				r.Class, r.Detail = collector.Missing, "nobody answers to "+t.Handle+" any more: renamed, deleted, or no professional account: "+r.Detail
			}
			return r, nil
		}
		if err != nil {
			return collector.Result{}, err
		}
		if i == 0 {
			if p.Followers.Wrong() || p.Follows.Wrong() {
				return collector.Result{Class: collector.Temporary, Detail: "the account has a count that is no whole number"}, nil
			}
			r.Sandbox = p.sandbox
			r.Account = &collector.AccountFacts{
				SourceID: p.sourceID(), Username: fetch.Handle(p.Username), Name: fetch.Name(p.Name), Bio: fetch.Name(p.Biography),
				Followers: p.Followers.Value(), Following: p.Follows.Value(), Private: new(false), Listed: true,
			}
		}
		switch id := p.sourceID(); {
		case id == nil && t.SourceID != "":
			return collector.Result{Class: collector.Temporary, Detail: "the answer does not say by an id whose it is"}, nil
		case t.IsStranger(&collector.AccountFacts{SourceID: id}):
			return t.Stranger(p.sandbox), nil
		}
		if p.broken && len(p.posts) == 0 {
			return collector.Result{}, &collector.Failure{Class: collector.Temporary, Detail: "no entry of the list is a post with a code, or there is no list"}
		}
		for _, item := range p.posts {
			if v, ok := item.video(); ok && !seen[v.ID] {
				seen[v.ID] = true
				r.Account.Videos = append(r.Account.Videos, v)
			}
		}
		if p.after == "" || p.after == after || len(r.Account.Videos) >= t.Depth {
			break
		}
		after = p.after
	}
	return r, nil
}

// video is a post as an account's video; false for photos.
func (item post) video() (ingest.FoundVideo, bool) {
	var c struct {
		Type      *string `json:"media_type"`
		Permalink *string `json:"permalink"`
	}
	if json.Unmarshal(item.raw, &c) != nil || c.Type == nil || *c.Type != "VIDEO" {
		return ingest.FoundVideo{}, false
	}
	v := ingest.FoundVideo{ID: item.code, Link: "https://www.instagram.com/reel/" + item.code + "/"}
	if c.Permalink != nil {
		if l, err := link.Parse(*c.Permalink); err == nil && l.Kind == link.Video && l.ID == item.code {
			v.Link = l.Canonical
		}
	}
	if item.uploaded != nil {
		at := store.InstantOf(*item.uploaded)
		v.UploadedAt = &at
	}
	return v, true
}
