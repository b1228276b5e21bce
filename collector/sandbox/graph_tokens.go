package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/reeltally/reeltally/store/link"
)

// metaApp is the state of the app whose tokens the Graph API takes.
type metaApp struct {
	mu            sync.Mutex
	requireSecret bool
	noInsights    bool // the permission read_insights is missing
	generation    int  // of the pages' tokens
}

func (m *metaApp) keepsInsights() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noInsights
}

func (m *metaApp) get() (requireSecret bool, generation int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requireSecret, m.generation
}

// proved is what Meta answers to a wrong proof, or to none where the app demands one; nil when all is well.
func (m *metaApp) proved(values url.Values) *reply {
	requireSecret, _ := m.get()
	var bad reply
	switch {
	case values.Has("appsecret_proof"):
		mac := hmac.New(sha256.New, []byte(MetaAppSecret))
		mac.Write([]byte(values.Get("access_token")))
		if hmac.Equal([]byte(values.Get("appsecret_proof")), []byte(hex.EncodeToString(mac.Sum(nil)))) {
			return nil
		}
		bad = graphError(http.StatusBadRequest, 100, 0, "Invalid appsecret_proof provided in the API argument")
	case requireSecret:
		bad = graphError(http.StatusBadRequest, 100, 0, "API calls from the server require an appsecret_proof argument")
	default:
		return nil
	}
	bad.body.(object)["error"].(object)["type"] = "GraphMethodException"
	bad = refuse(bad)
	return &bad
}

// ownPages is how many pages there are on which the owner of FacebookUserToken has a role.
const ownPages = 3

// FacebookPages are the ids of the pages on which the owner of FacebookUserToken has a role; the first is that of FacebookToken.
func (w *World) FacebookPages() []string {
	var ids []string
	for number := w.facebookOwn().number; len(ids) < ownPages; number++ {
		if w.accountCategory(link.Facebook, number) == AccountNormal {
			ids = append(ids, w.byNumber(link.Facebook, number).id)
		}
	}
	return ids
}

func facebookPageToken(id string, generation int) string {
	return fmt.Sprintf("sandbox-facebook-page-%s-%d", id, generation)
}

// facebookBearer is whom a token of Facebook is of: a page's id, "" for the system user; ok is false for no valid token.
func (s *Sandbox) facebookBearer(token string) (page string, ok bool) {
	_, generation := s.meta.get()
	switch token {
	case FacebookUserToken:
		return "", true
	case FacebookToken:
		return s.world.facebookOwn().id, true
	}
	for _, id := range s.world.FacebookPages() {
		if token == facebookPageToken(id, generation) {
			return id, true
		}
	}
	return "", false
}

// facebookPages answers me/accounts: the pages of a system user with their tokens. To a page, nobody is given.
func (s *Sandbox) facebookPages(c *call, q graphRequest, bearer string) reply {
	if bearer != "" {
		return graphError(http.StatusBadRequest, 100, 0, "(#100) Tried accessing nonexisting field (accounts) on node type (Page)")
	}
	_, generation := s.meta.get()
	next := "https://" + c.r.Host + c.r.URL.Path + "?limit=" + q.values.Get("limit")
	list, bad := graphPage(s.world.FacebookPages(), q.values.Get("limit"), q.values.Get("after"), next, q.fields, nil, func(id string) graphNode {
		t, _ := s.world.Account(link.Facebook, id, c.now)
		return graphNode{kind: "Page", fields: object{"id": id, "name": t.Name, "access_token": facebookPageToken(id, generation), "category": "Creator", "tasks": []string{"ANALYZE"}}}
	})
	if bad != nil {
		return *bad
	}
	return reply{status: http.StatusOK, body: list}
}

// needsPage is what the system user gets who asks for a video, or a list, of his second or third page, as of all pages of a newer
// kind; nil for whatever may be read.
func (s *Sandbox) needsPage(bearer, page string) *reply {
	if bearer != "" || !slices.Contains(s.world.FacebookPages()[1:], page) {
		return nil
	}
	bad := graphError(http.StatusBadRequest, 210, 0, "(#210) A page access token is required to request this resource.")
	return &bad
}

// putMeta steers the app.
func (s *Sandbox) putMeta(r *http.Request) reply {
	var in struct {
		RequireAppSecret *bool `json:"require_app_secret"`
		RefuseInsights   *bool `json:"refuse_insights"`
		ExpirePageTokens bool  `json:"expire_page_tokens"`
	}
	if err := strictJSON(r.Body, &in); err != nil {
		return problem(http.StatusBadRequest, "the body must be an object of require_app_secret, refuse_insights and expire_page_tokens: "+err.Error())
	}
	s.meta.mu.Lock()
	defer s.meta.mu.Unlock()
	if in.RequireAppSecret != nil {
		s.meta.requireSecret = *in.RequireAppSecret
	}
	if in.RefuseInsights != nil {
		s.meta.noInsights = *in.RefuseInsights
	}
	if in.ExpirePageTokens {
		s.meta.generation++
	}
	return reply{status: http.StatusOK, body: object{"require_app_secret": s.meta.requireSecret, "refuse_insights": s.meta.noInsights, "page_tokens": s.meta.generation}}
}

// isMe says whether a path is that of whoever asks.
func isMe(path []string) bool { return strings.EqualFold(path[0], "me") }
