package collect

import (
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/instagram"
	"github.com/reeltally/reeltally/collector/source"
)

// Instagram has the settings of the Instagram Graph API.
type Instagram struct {
	InstagramToken     boot.Secret `name:"instagram-access-token" setting:"REELTALLY_INSTAGRAM_ACCESS_TOKEN" placeholder:"TOKEN" help:"Access token of the Instagram Graph API. Enables Instagram as a source."`
	InstagramAppSecret boot.Secret `name:"instagram-app-secret" setting:"REELTALLY_INSTAGRAM_APP_SECRET" placeholder:"SECRET" help:"Secret of the app that issued the token. With it, each call carries a proof that it comes from the app's server."`
	InstagramAccountID string      `name:"instagram-account-id" setting:"REELTALLY_INSTAGRAM_ACCOUNT_ID" placeholder:"ID" help:"Graph API id of your professional account that the token belongs to. Other accounts are looked up through it."`
	InstagramBaseURL   string      `name:"instagram-base-url" setting:"REELTALLY_INSTAGRAM_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Base URL of the Graph API for Instagram, ending with the API version."`
}

func (c Instagram) enabled() bool { return c.InstagramToken != "" }

func (c Instagram) hasCustomURL() bool { return c.InstagramBaseURL != graph.DefaultBaseURL }

func (c Instagram) check() error {
	switch {
	case c.enabled() != (c.InstagramAccountID != ""):
		return usagef("REELTALLY_INSTAGRAM_ACCESS_TOKEN and REELTALLY_INSTAGRAM_ACCOUNT_ID go together: set both or neither. The account id is the id of your professional account, to which the token belongs")
	case !c.enabled() && c.InstagramAppSecret != "":
		return usagef("REELTALLY_INSTAGRAM_APP_SECRET is set but REELTALLY_INSTAGRAM_ACCESS_TOKEN is not: also set an access token that this app issued")
	}
	return nil
}

func (c Instagram) sources(e environment) ([]source.Source, error) {
	s, err := instagram.New(instagram.Options{BaseURL: c.InstagramBaseURL, Token: c.InstagramToken.Reveal(), AppSecret: c.InstagramAppSecret.Reveal(), AccountID: c.InstagramAccountID,
		Client: e.client, Now: time.Now})
	if err != nil {
		return nil, usagef("REELTALLY_INSTAGRAM_BASE_URL or REELTALLY_INSTAGRAM_ACCOUNT_ID is invalid: %w", err)
	}
	return []source.Source{s}, nil
}
