package collect

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/tiktok"
	"github.com/reeltally/reeltally/store"
)

// TikTok says which of TikTok's own interfaces are sources.
type TikTok struct {
	ClientKey    boot.Secret   `name:"tiktok-client-key" setting:"REELTALLY_TIKTOK_CLIENT_KEY" placeholder:"KEY" help:"The client key of your TikTok app: with its secret and a refresh token, makes the Display API a source for the videos of an account that has logged in."`
	ClientSecret boot.Secret   `name:"tiktok-client-secret" setting:"REELTALLY_TIKTOK_CLIENT_SECRET" placeholder:"SECRET" help:"The client secret of your TikTok app. It also seals the tokens that are kept in the database."`
	RefreshToken []boot.Secret `name:"tiktok-refresh-token" setting:"REELTALLY_TIKTOK_REFRESH_TOKEN" placeholder:"TOKEN" help:"The refresh token that the login of an account gave, of several accounts one each. It is used once; its successors are kept in the database."`
	BaseURL      string        `name:"tiktok-base-url" setting:"REELTALLY_TIKTOK_BASE_URL" default:"https://open.tiktokapis.com/" placeholder:"URL" help:"Where TikTok's Display API is served."`
	Requests     int64         `name:"tiktok-requests" setting:"REELTALLY_TIKTOK_REQUESTS" default:"300" placeholder:"N" help:"Requests a minute to the Display API, of all collectors and accounts together; -1 when there is no limit."`

	ResearchClientKey    boot.Secret `name:"tiktok-research-client-key" setting:"REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY" placeholder:"KEY" help:"The client key of a research project that TikTok has approved: makes the Research API a source. No commercial use."`
	ResearchClientSecret boot.Secret `name:"tiktok-research-client-secret" setting:"REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET" placeholder:"SECRET" help:"The client secret of the research project."`
	ResearchBaseURL      string      `name:"tiktok-research-base-url" setting:"REELTALLY_TIKTOK_RESEARCH_BASE_URL" default:"https://open.tiktokapis.com/" placeholder:"URL" help:"Where TikTok's Research API is served."`
	ResearchRequests     int64       `name:"tiktok-research-requests" setting:"REELTALLY_TIKTOK_RESEARCH_REQUESTS" default:"1000" placeholder:"N" help:"Requests a day that the project may make; -1 when there is no limit."`
	ResearchRecords      int64       `name:"tiktok-research-records" setting:"REELTALLY_TIKTOK_RESEARCH_RECORDS" default:"100000" placeholder:"N" help:"Records a day that the project may be given; -1 when there is no limit."`
}

// HasTikTok says whether TikTok itself is a source.
func (c TikTok) HasTikTok() bool { return c.hasDisplay() || c.ResearchClientKey != "" }

func (c TikTok) hasDisplay() bool {
	return c.ClientKey != "" && c.ClientSecret != "" && len(c.RefreshToken) > 0
}

// check returns the first setting that cannot be used.
func (c TikTok) check() error {
	const allowed = "1 or more, or -1 when there is no limit"
	someOfDisplay := c.ClientKey != "" || c.ClientSecret != "" || len(c.RefreshToken) > 0
	switch {
	case c.Requests < -1 || c.Requests == 0:
		return boot.Bad("tiktok-requests", "REELTALLY_TIKTOK_REQUESTS", c.Requests, allowed)
	case c.ResearchRequests < -1 || c.ResearchRequests == 0:
		return boot.Bad("tiktok-research-requests", "REELTALLY_TIKTOK_RESEARCH_REQUESTS", c.ResearchRequests, allowed)
	case c.ResearchRecords < -1 || c.ResearchRecords == 0:
		return boot.Bad("tiktok-research-records", "REELTALLY_TIKTOK_RESEARCH_RECORDS", c.ResearchRecords, allowed)
	case someOfDisplay && !c.hasDisplay():
		return usagef("REELTALLY_TIKTOK_CLIENT_KEY, REELTALLY_TIKTOK_CLIENT_SECRET and REELTALLY_TIKTOK_REFRESH_TOKEN belong together: set all three, or none")
	case (c.ResearchClientKey == "") != (c.ResearchClientSecret == ""):
		return usagef("REELTALLY_TIKTOK_RESEARCH_CLIENT_KEY and REELTALLY_TIKTOK_RESEARCH_CLIENT_SECRET belong together: set both, or none")
	}
	return nil
}

// sources makes a source of each account that has logged in to the app, which share what the app may ask, and one of the
// research project.
func (c TikTok) sources(st *store.Store, client *fetch.Client, logger *slog.Logger) (display, research []collector.Source, err error) {
	for i, token := range c.RefreshToken {
		o := tiktok.DisplayOptions{BaseURL: c.BaseURL, ClientKey: c.ClientKey.Reveal(), ClientSecret: c.ClientSecret.Reveal(),
			RefreshToken: token.Reveal(), Client: client, Tokens: st.Queue, Now: time.Now, Logger: logger, Limit: c.Requests}
		if i > 0 {
			o.Name = fmt.Sprintf("%s:%d", tiktok.DisplayName, i+1)
		}
		if o.Limit > 0 {
			o.Limit = max(1, o.Limit/int64(len(c.RefreshToken)))
		}
		s, err := tiktok.NewDisplay(o)
		if err != nil {
			return nil, nil, usagef("REELTALLY_TIKTOK_BASE_URL, REELTALLY_TIKTOK_REFRESH_TOKEN: %w", err)
		}
		display = append(display, s)
	}
	if c.ResearchClientKey != "" {
		s, err := tiktok.NewResearch(tiktok.ResearchOptions{BaseURL: c.ResearchBaseURL, ClientKey: c.ResearchClientKey.Reveal(),
			ClientSecret: c.ResearchClientSecret.Reveal(), Client: client, Now: time.Now, Requests: c.ResearchRequests, Records: c.ResearchRecords})
		if err != nil {
			return nil, nil, usagef("REELTALLY_TIKTOK_RESEARCH_BASE_URL: %w", err)
		}
		research = append(research, s)
	}
	return display, research, nil
}
