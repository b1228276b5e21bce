package collect

import (
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/youtube"
)

// YouTube has the settings of the YouTube Data API.
type YouTube struct {
	YouTubeAPIKey  boot.Secret `name:"youtube-api-key" setting:"REELTALLY_YOUTUBE_API_KEY" placeholder:"KEY" help:"Key of the YouTube Data API. Enables YouTube as a source."`
	YouTubeBaseURL string      `name:"youtube-base-url" setting:"REELTALLY_YOUTUBE_BASE_URL" default:"https://youtube.googleapis.com/" placeholder:"URL" help:"Base URL of the YouTube Data API."`
	YouTubeUnits   int64       `name:"youtube-units" setting:"REELTALLY_YOUTUBE_UNITS" default:"10000" placeholder:"N" help:"Daily budget, in units of the key's project, for all calls except videos.batchGetStats; -1 means no limit."`
	YouTubeStats   int64       `name:"youtube-stats-units" setting:"REELTALLY_YOUTUBE_STATS_UNITS" default:"10000" placeholder:"N" help:"Daily budget, in units, for videos.batchGetStats, which YouTube counts separately; -1 means no limit."`
}

func (c YouTube) enabled() bool { return c.YouTubeAPIKey != "" }

func (c YouTube) hasCustomURL() bool { return c.YouTubeBaseURL != youtube.DefaultBaseURL }

func (c YouTube) check() error {
	switch {
	case c.YouTubeUnits < -1 || c.YouTubeUnits == 0:
		return boot.InvalidSetting("REELTALLY_YOUTUBE_UNITS", c.YouTubeUnits, allowedLimits)
	case c.YouTubeStats < -1 || c.YouTubeStats == 0:
		return boot.InvalidSetting("REELTALLY_YOUTUBE_STATS_UNITS", c.YouTubeStats, allowedLimits)
	}
	return nil
}

func (c YouTube) sources(e environment) ([]source.Source, error) {
	s, err := youtube.New(youtube.Options{BaseURL: c.YouTubeBaseURL, APIKey: c.YouTubeAPIKey.Reveal(), Client: e.client,
		CommonLimit: c.YouTubeUnits, StatsLimit: c.YouTubeStats, Now: time.Now})
	if err != nil {
		return nil, usagef("REELTALLY_YOUTUBE_BASE_URL is invalid: %w", err)
	}
	return []source.Source{s}, nil
}
