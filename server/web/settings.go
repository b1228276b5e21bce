package web

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// settingsPage is the data for the template of the page Settings.
type settingsPage struct {
	Account         client.Authentication
	Tokens          []client.ListedToken // the tokens of the organisation, the newest first; empty if the visitor is not allowed to manage tokens
	Made            *client.CreatedToken // the token that the visitor has just created; its secret is shown only now
	Webhooks        webhookSettings
	MadeWebhook     *client.CreatedWebhook // the webhook that the visitor has just created; its secret is shown only now
	NewToken        form                   // the form that creates a token
	NewWebhook      form                   // the form that creates a webhook
	Key             string                 // random text that identifies the forms of this page
	History         int                    // how many days a history reaches back in the organisation's tier
	CanManageTokens bool                   // true if the visitor may manage tokens
	Fetched         []fetchedPlatform      // one entry for each platform; empty if no collector is running
}

// fetchedPlatform says whether the running collectors can fetch the videos and the accounts of one platform. Videos and Accounts are texts
// for the page, such as "fetched".
type fetchedPlatform struct {
	Platform         link.Platform
	Videos, Accounts string
}

// fetchedPlatforms returns one entry for each platform, or nil if no collector is running.
func fetchedPlatforms(fetchable queue.Fetchable) []fetchedPlatform {
	if !fetchable.IsKnown() {
		return nil
	}
	words := func(p link.Platform, kind queue.Kind) string {
		byHandle, byID := fetchable.CanFetch(queue.Form{Platform: p, Kind: kind, ByHandle: true}), fetchable.CanFetch(queue.Form{Platform: p, Kind: kind})
		switch {
		case byHandle && !byID && kind == queue.KindVideo:
			return "fetched, but only for links that contain the name of the account"
		case byHandle || byID:
			return "fetched"
		}
		return "not fetched, because no source is configured"
	}
	var out []fetchedPlatform
	for _, p := range link.Platforms {
		out = append(out, fetchedPlatform{p, words(p, queue.KindVideo), words(p, queue.KindAccount)})
	}
	return out
}

// showSettings shows the tokens, the tier and the limits of the organisation.
func showSettings(v *visit) error {
	return v.renderSettings(http.StatusOK, settingsPage{})
}

// renderSettings shows the page Settings. It reads the tokens, limits and other settings from the API and the backend, and adds them to
// content, the data of the page.
func (v *visit) renderSettings(status int, content settingsPage) error {
	if err := v.getFromAPI("/authenticate", nil, &content.Account); err != nil {
		return err
	}
	if content.CanManageTokens = v.id.Token.HasScope(store.ScopeAdmin); content.CanManageTokens {
		var list client.TokenList
		if err := v.getFromAPI("/tokens", nil, &list); err != nil {
			return err
		}
		content.Tokens = list.Data
		var err error
		if content.Webhooks, err = v.readWebhooks(); err != nil {
			return err
		}
	}
	fetchable, err := v.Backend.FetchableLinks(v.r.Context())
	if err != nil {
		return err
	}
	content.Fetched = fetchedPlatforms(fetchable)
	content.Key = rand.Text()
	if content.NewToken.Refused == nil {
		content.NewToken.Values = url.Values{"days": {"90"}}
	}
	content.History = v.Backend.HistoryDays(v.id.Organisation.Tier)
	return v.renderPage(status, "settings", "settings", "Settings", content)
}

// createToken creates a token from the values in the form and shows its secret once.
func createToken(v *visit) error {
	request := client.CreateTokenRequest{Name: v.r.PostFormValue("name")}
	for scope := range strings.SplitSeq(v.r.PostFormValue("scopes"), ",") {
		request.Scopes = append(request.Scopes, client.Scope(scope))
	}
	if days := v.r.PostFormValue("days"); days != "" {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil {
			return v.showRefusedToken(&Problem{Status: http.StatusBadRequest, Detail: "The number of days must be a whole number."})
		}
		request.ExpiresInDays = new(int32(n))
	}
	var made client.CreatedToken
	if err := v.sendJSONOnce("/tokens", request, &made); err != nil {
		return v.showRefusedToken(err)
	}
	return v.renderSettings(http.StatusOK, settingsPage{Made: &made})
}

// showRefusedToken shows the page Settings with the reason why a token was not created.
func (v *visit) showRefusedToken(err error) error {
	refused, err := v.refusedForm(err, map[string]string{"name": "Name", "scopes": "Permissions", "scopes.0": "Permissions", "expires_in_days": "Valid"})
	if err != nil {
		return err
	}
	return v.renderSettings(refused.Refused.Status, settingsPage{NewToken: refused})
}

func revokeToken(v *visit) error {
	if _, err := v.callAPI(APIRequest{Method: http.MethodDelete, Target: "/tokens/" + url.PathEscape(v.r.PathValue("id"))}, nil); err != nil {
		return err
	}
	v.redirectTo("/settings?notice=token-revoked")
	return nil
}

// themeCookie is the name of the cookie with the colour scheme that the visitor chose.
const themeCookie = "reeltally_theme"

// themes are the colour schemes that a visitor can choose. "" means the colour scheme of the visitor's system.
var themes = []string{"", "light", "dark"}

// setTheme reads the chosen colour scheme from the submitted form and stores it in a cookie.
func setTheme(v *visit) error {
	theme := v.r.PostFormValue("theme")
	if !slices.Contains(themes, theme) {
		return &Problem{Status: http.StatusBadRequest, Title: "Unknown colours", Detail: fmt.Sprintf("theme is %q; it must be light, dark or empty.", theme)}
	}
	cookie := &http.Cookie{ //nolint:gosec // Secure is false only if the dashboard has an http URL, over which browsers would not send a secure cookie
		Name: themeCookie, Value: theme, Path: v.base + "/", MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true, Secure: v.Secure, SameSite: http.SameSiteLaxMode}
	if theme == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
	v.redirectTo("/settings?notice=theme")
	return nil
}

// theme returns the colour scheme that the visitor chose, or "" for the colour scheme of the visitor's system.
func (v *visit) theme() string {
	cookie, err := v.r.Cookie(themeCookie)
	if err != nil || !slices.Contains(themes, cookie.Value) {
		return ""
	}
	return cookie.Value
}
