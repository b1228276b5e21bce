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

// metaApp is the state of the simulated Meta app that issued the tokens of the Graph API. Control calls change it.
type metaApp struct {
	mu            sync.Mutex
	requireSecret bool // true if each call needs an appsecret_proof
	noInsights    bool // true if the app lacks the permission read_insights
	generation    int  // number that all valid page tokens contain; increasing it makes the earlier page tokens invalid
}

// refusesInsights returns true if the app lacks the permission to read insights.
func (m *metaApp) refusesInsights() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noInsights
}

// settings returns the fields requireSecret and generation.
func (m *metaApp) settings() (requireSecret bool, generation int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requireSecret, m.generation
}

// checkProof returns Meta's error if the appsecret_proof is wrong, or if it is missing although the app requires one. It returns nil for
// all other requests.
func (m *metaApp) checkProof(values url.Values) *reply {
	requireSecret, _ := m.settings()
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
	bad = markRefused(bad)
	return &bad
}

// systemUserPageCount is the number of Facebook pages that FacebookUserToken can manage.
const systemUserPageCount = 3

// FacebookPages returns the ids of the pages that FacebookUserToken can manage. FacebookToken belongs to the first of
// these pages.
func (w *World) FacebookPages() []string {
	var ids []string
	for number := w.pageOfFacebookToken().number; len(ids) < systemUserPageCount; number++ {
		if w.accountCategory(link.Facebook, number) == AccountNormal {
			ids = append(ids, w.accountByNumber(link.Facebook, number).id)
		}
	}
	return ids
}

// facebookPageToken returns the token of the page with the given id. The token is valid while generation equals metaApp.generation.
func facebookPageToken(id string, generation int) string {
	return fmt.Sprintf("sandbox-facebook-page-%s-%d", id, generation)
}

// facebookTokenOwner returns the id of the page to which a token belongs. It returns "" for the
// token of the system user, and false for an invalid token.
func (s *Sandbox) facebookTokenOwner(token string) (page string, ok bool) {
	_, generation := s.meta.settings()
	switch token {
	case FacebookUserToken:
		return "", true
	case FacebookToken:
		return s.world.pageOfFacebookToken().id, true
	}
	for _, id := range s.world.FacebookPages() {
		if token == facebookPageToken(id, generation) {
			return id, true
		}
	}
	return "", false
}

// serveFacebookPagesOfUser answers me/accounts with the pages of the system user and the tokens of
// these pages. A request with a page token gets an error.
func (s *Sandbox) serveFacebookPagesOfUser(c *call, q graphRequest, owner string) reply {
	if owner != "" {
		return graphError(http.StatusBadRequest, 100, 0, "(#100) Tried accessing nonexisting field (accounts) on node type (Page)")
	}
	_, generation := s.meta.settings()
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

// requirePageToken returns an error reply if a token may not read the videos of a page, and nil
// otherwise. tokenPage is "" for the system user's token.
func (s *Sandbox) requirePageToken(tokenPage, page string) *reply {
	// The token of the system user cannot read the second and third page in FacebookPages.
	if tokenPage != "" || !slices.Contains(s.world.FacebookPages()[1:], page) {
		return nil
	}
	bad := graphError(http.StatusBadRequest, 210, 0, "(#210) A page access token is required to request this resource.")
	return &bad
}

// configureMeta answers PUT /_control/meta: it changes the state of the simulated Meta app.
func (s *Sandbox) configureMeta(r *http.Request) reply {
	var in struct {
		RequireAppSecret *bool `json:"require_app_secret"`
		RefuseInsights   *bool `json:"refuse_insights"`
		ExpirePageTokens bool  `json:"expire_page_tokens"`
	}
	if err := decodeStrictJSON(r.Body, &in); err != nil {
		return problemReply(http.StatusBadRequest, "the body must be an object with require_app_secret, refuse_insights and expire_page_tokens: "+err.Error())
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

// isPathOfTokenOwner returns true if the first element of a path is "me", which stands for the owner of the token.
func isPathOfTokenOwner(path []string) bool { return strings.EqualFold(path[0], "me") }
