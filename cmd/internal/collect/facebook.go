package collect

import (
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

// Facebook has the settings of the Facebook Graph API.
type Facebook struct {
	FacebookToken       boot.Secret `name:"facebook-access-token" setting:"REELTALLY_FACEBOOK_ACCESS_TOKEN" placeholder:"TOKEN" help:"Access token of the Facebook Graph API: a page token, or the token of a person or system user with a role on your pages. Enables Facebook as a source."`
	FacebookAppSecret   boot.Secret `name:"facebook-app-secret" setting:"REELTALLY_FACEBOOK_APP_SECRET" placeholder:"SECRET" help:"Secret of the app that issued the token. With it, each call carries a proof that it comes from the app's server."`
	FacebookPageIDs     []string    `name:"facebook-page-id" setting:"REELTALLY_FACEBOOK_PAGE_ID" placeholder:"ID" help:"Ids of your own pages, whose insights the token can read, directly or through page tokens. Leave it empty if you own none of the tracked pages."`
	FacebookReelMetric  string      `name:"facebook-reel-metric" setting:"REELTALLY_FACEBOOK_REEL_METRIC" default:"fb_reels_total_plays" placeholder:"NAME" help:"Facebook Insights metric with the views of reels on your own pages. It is a setting because Facebook renames metrics."`
	FacebookVideoMetric string      `name:"facebook-video-metric" setting:"REELTALLY_FACEBOOK_VIDEO_METRIC" default:"total_video_views" placeholder:"NAME" help:"Facebook Insights metric with the views of videos other than reels on your own pages."`
	FacebookBaseURL     string      `name:"facebook-base-url" setting:"REELTALLY_FACEBOOK_BASE_URL" default:"https://graph.facebook.com/v25.0/" placeholder:"URL" help:"Base URL of the Graph API for Facebook, ending with the API version."`
}

func (c Facebook) enabled() bool { return c.FacebookToken != "" }

func (c Facebook) hasCustomURL() bool { return c.FacebookBaseURL != graph.DefaultBaseURL }

func (c Facebook) check() error {
	switch {
	case !c.enabled() && c.FacebookAppSecret != "":
		return usagef("REELTALLY_FACEBOOK_APP_SECRET is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: also set an access token that this app issued")
	case !c.enabled() && len(c.FacebookPageIDs) > 0:
		return usagef("REELTALLY_FACEBOOK_PAGE_ID is set but REELTALLY_FACEBOOK_ACCESS_TOKEN is not: also set an access token that can read these pages")
	}
	return nil
}

func (c Facebook) sources(e environment) ([]source.Source, error) {
	s, err := facebook.New(facebook.Options{BaseURL: c.FacebookBaseURL, Token: c.FacebookToken.Reveal(), AppSecret: c.FacebookAppSecret.Reveal(), PageIDs: c.FacebookPageIDs,
		ReelMetric: c.FacebookReelMetric, VideoMetric: c.FacebookVideoMetric, Client: e.client, Now: time.Now, Logger: e.logger})
	if err != nil {
		return nil, usagef("REELTALLY_FACEBOOK_BASE_URL, REELTALLY_FACEBOOK_PAGE_ID, REELTALLY_FACEBOOK_REEL_METRIC or REELTALLY_FACEBOOK_VIDEO_METRIC is invalid: %w", err)
	}
	return []source.Source{s}, nil
}
