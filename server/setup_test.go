package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

// setupLinkReasons is the text for a setup link that does not work, on a server without an organisation.
const setupLinkReasons = "The link is incomplete, older than 30 minutes, or replaced by a newer setup link. " +
	"Each start of the server makes a new setup link. To get one now, run: reeltally login-link"

func TestSetup_createsTheFirstOrganisationOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		replaced, err := a.CreateSetupLink(t.Context())
		require.NoError(t, err)
		link, err := a.CreateSetupLink(t.Context())
		require.NoError(t, err)
		v := &visitor{app: a, t: t}
		for _, unusable := range []string{replaced, "x", strings.Repeat("A", 43)} {
			for _, refused := range []response{v.visit("/setup/" + unusable), v.post("/setup/"+unusable, "name", "Mine")} {
				require.Contains(t, string(refused.requireStatus(http.StatusGone).body), setupLinkReasons)
			}
		}
		v.visit("/login/" + link).requireStatus(http.StatusUnauthorized) // a setup link cannot be used as a login link
		for range 2 {
			require.Contains(t, string(v.visit("/setup/"+link).requireStatus(http.StatusOK).body), `name="name"`)
		}
		require.Contains(t, string(v.post("/setup/"+link, "name", " ").requireStatus(http.StatusBadRequest).body), "1 to 100 characters")
		require.Nil(t, v.cookie)

		done := v.post("/setup/"+link, "name", "Northwind <Studio>").requireStatus(http.StatusOK)
		require.Contains(t, string(done.body), "Northwind &lt;Studio&gt;</bdi> is ready")
		secret := strings.TrimSpace(textOf(findElements(done.parsePage(), "code")[0]))
		id, err := a.Authenticate(t.Context(), secret)
		require.NoError(t, err)
		require.Equal(t, store.TierPremium, id.Organisation.Tier)
		require.Equal(t, store.SubscriptionActive, id.Organisation.Subscription)
		require.ElementsMatch(t, store.Scopes, id.Token.Scopes)
		require.Nil(t, id.Token.ExpiresAt)
		require.Contains(t, string(done.body), "No running collector has a source")
		require.Contains(t, string(v.visit("/").requireStatus(http.StatusOK).body), "Northwind &lt;Studio&gt;")

		other := &visitor{app: a, t: t}
		for _, again := range []response{other.visit("/setup/" + link), other.post("/setup/"+link, "name", "Mine")} {
			require.Contains(t, string(again.requireStatus(http.StatusGone).body), "This server is already set up")
		}
		require.Nil(t, other.cookie)
		_, err = a.CreateSetupLink(t.Context())
		require.ErrorIs(t, err, store.ErrSetUp)
		require.NotContains(t, a.log.String(), link)
		require.NotContains(t, a.log.String(), secret)
	})
}

func TestSetup_linkExpires(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		link, err := a.CreateSetupLink(t.Context())
		require.NoError(t, err)
		a.Clock.Advance(store.LoginLinkLife)
		v := &visitor{app: a, t: t}
		for _, refused := range []response{v.visit("/setup/" + link), v.post("/setup/"+link, "name", "Mine")} {
			require.Contains(t, string(refused.requireStatus(http.StatusGone).body), setupLinkReasons)
		}
	})
}

func TestSetup_concurrentVisitorsCreateOneOrganisation(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		link, err := a.CreateSetupLink(t.Context())
		require.NoError(t, err)
		statuses := a.postConcurrently(t, 8, "/setup/"+link, func(int) url.Values { return url.Values{"name": {"Mine"}} })
		require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusGone: 7}, statuses)
		all, err := a.Organisations(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
}

// TestSetup_showsCommandsThatTrackAndReadAVideo reads the token, the body and the path from each curl command on the page. It sends the same requests
// with its own HTTP client.
func TestSetup_showsCommandsThatTrackAndReadAVideo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		_, err := a.Heartbeat(t.Context(), store.NewID(), time.Minute, nil)
		require.NoError(t, err)
		a.Exec(t, "UPDATE collectors SET serves = 'tiktok video'")
		link, err := a.CreateSetupLink(t.Context())
		require.NoError(t, err)
		v := &visitor{app: a, t: t}
		done := v.post("/setup/"+link, "name", "Mine").requireStatus(http.StatusOK)
		require.NotContains(t, string(done.body), "No running collector has a source")
		codes := findElements(done.parsePage(), "code")
		secret := strings.TrimSpace(textOf(codes[0]))
		commands := regexp.MustCompile(`(?m)^curl -sS -H 'Authorization: Bearer (\S+)'(?: -H 'Content-Type: application/json' -d '(\S+ \S+)')? 'https://app\.example\.test(\S+)'$`).
			FindAllStringSubmatch(textOf(codes[len(codes)-1]), -1)
		require.Len(t, commands, 3)
		c := &caller{app: a, t: t, token: secret}
		for i, command := range commands {
			require.Equal(t, secret, command[1])
			if i == 0 {
				c.send(http.MethodPost, command[3], strings.ReplaceAll(command[2], "LINK", tiktokLink)).requireStatus(http.StatusOK)
				continue
			}
			c.send(http.MethodGet, strings.ReplaceAll(command[3], "LINK", url.PathEscape(tiktokLink)), nil).requireStatus(http.StatusOK)
		}
	})
}
