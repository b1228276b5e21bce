package collect

import (
	"fmt"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/tiktok"
)

// TikTok has the settings of TikTok's Display API.
type TikTok struct {
	ClientKey    boot.Secret   `name:"tiktok-client-key" setting:"REELTALLY_TIKTOK_CLIENT_KEY" placeholder:"KEY" help:"Client key of your TikTok app. With its secret and a refresh token, enables the Display API as a source for the videos of the account that logged in."`
	ClientSecret boot.Secret   `name:"tiktok-client-secret" setting:"REELTALLY_TIKTOK_CLIENT_SECRET" placeholder:"SECRET" help:"Client secret of your TikTok app. It also encrypts the refresh tokens in the database."`
	RefreshToken []boot.Secret `name:"tiktok-refresh-token" setting:"REELTALLY_TIKTOK_REFRESH_TOKEN" placeholder:"TOKEN" help:"Refresh token from the login of an account; give one for each account. Each token is used once, and the tokens that replace it are kept in the database."`
	BaseURL      string        `name:"tiktok-base-url" setting:"REELTALLY_TIKTOK_BASE_URL" default:"https://open.tiktokapis.com/" placeholder:"URL" help:"Base URL of TikTok's Display API."`
	Requests     int64         `name:"tiktok-requests" setting:"REELTALLY_TIKTOK_REQUESTS" default:"300" placeholder:"N" help:"Requests a minute to the Display API, for all collectors and accounts together; -1 means no limit."`
}

func (c TikTok) enabled() bool {
	return c.ClientKey != "" && c.ClientSecret != "" && len(c.RefreshToken) > 0
}

func (c TikTok) hasCustomURL() bool { return c.BaseURL != tiktok.DefaultBaseURL }

func (c TikTok) check() error {
	anySet := c.ClientKey != "" || c.ClientSecret != "" || len(c.RefreshToken) > 0
	switch {
	case c.Requests < -1 || c.Requests == 0:
		return boot.InvalidSetting("REELTALLY_TIKTOK_REQUESTS", c.Requests, allowedLimits)
	case anySet && !c.enabled():
		return usagef("REELTALLY_TIKTOK_CLIENT_KEY, REELTALLY_TIKTOK_CLIENT_SECRET and REELTALLY_TIKTOK_REFRESH_TOKEN go together: set all three or none")
	}
	return nil
}

// sources returns a source for each refresh token. TikTok replaces a refresh token at each use, so the sources save new tokens in the store.
func (c TikTok) sources(e environment) ([]source.Source, error) {
	var sources []source.Source
	for i, token := range c.RefreshToken {
		o := tiktok.DisplayOptions{BaseURL: c.BaseURL, ClientKey: c.ClientKey.Reveal(), ClientSecret: c.ClientSecret.Reveal(),
			RefreshToken: token.Reveal(), Client: e.client, Tokens: e.store.Queue, Now: time.Now, Logger: e.logger, Limit: c.Requests}
		if i > 0 {
			o.Name = fmt.Sprintf("%s:%d", tiktok.DisplayName, i+1)
		}
		// TikTok limits the requests of the whole app, so all Display API sources share the limit equally.
		if o.Limit > 0 {
			o.Limit = max(1, o.Limit/int64(len(c.RefreshToken)))
		}
		s, err := tiktok.NewDisplay(o)
		if err != nil {
			return nil, usagef("REELTALLY_TIKTOK_BASE_URL or REELTALLY_TIKTOK_REFRESH_TOKEN is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// TikTokResearch has the settings of TikTok's Research API.
type TikTokResearch struct {
	ResearchClientKey    boot.Secret `name:"tiktok-research-client-key" setting:"REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY" placeholder:"KEY" help:"Client key of a research project that TikTok has approved. Enables the Research API as a source. TikTok forbids commercial use."`
	ResearchClientSecret boot.Secret `name:"tiktok-research-client-secret" setting:"REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET" placeholder:"SECRET" help:"Client secret of the research project."`
	ResearchBaseURL      string      `name:"tiktok-research-base-url" setting:"REELTALLY_TIKTOK_RESEARCH_BASE_URL" default:"https://open.tiktokapis.com/" placeholder:"URL" help:"Base URL of TikTok's Research API."`
	ResearchRequests     int64       `name:"tiktok-research-requests" setting:"REELTALLY_TIKTOK_RESEARCH_REQUESTS" default:"1000" placeholder:"N" help:"Requests a day to the Research API; -1 means no limit."`
	ResearchRecords      int64       `name:"tiktok-research-records" setting:"REELTALLY_TIKTOK_RESEARCH_RECORDS" default:"100000" placeholder:"N" help:"Records a day from the Research API; -1 means no limit."`
}

func (c TikTokResearch) enabled() bool { return c.ResearchClientKey != "" }

func (c TikTokResearch) hasCustomURL() bool { return c.ResearchBaseURL != tiktok.DefaultBaseURL }

func (c TikTokResearch) check() error {
	switch {
	case c.ResearchRequests < -1 || c.ResearchRequests == 0:
		return boot.InvalidSetting("REELTALLY_TIKTOK_RESEARCH_REQUESTS", c.ResearchRequests, allowedLimits)
	case c.ResearchRecords < -1 || c.ResearchRecords == 0:
		return boot.InvalidSetting("REELTALLY_TIKTOK_RESEARCH_RECORDS", c.ResearchRecords, allowedLimits)
	case (c.ResearchClientKey == "") != (c.ResearchClientSecret == ""):
		return usagef("REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY and REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET go together: set both or neither")
	}
	return nil
}

func (c TikTokResearch) sources(e environment) ([]source.Source, error) {
	s, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: c.ResearchBaseURL, ClientKey: c.ResearchClientKey.Reveal(),
		ClientSecret: c.ResearchClientSecret.Reveal(), Client: e.client, Now: time.Now, Requests: c.ResearchRequests, Records: c.ResearchRecords})
	if err != nil {
		return nil, usagef("REELTALLY_TIKTOK_RESEARCH_BASE_URL is invalid: %w", err)
	}
	return []source.Source{s}, nil
}
