package store

import (
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Account is an account of a platform. An untracked account is stored only because videos are
// linked to it, and is not fetched.
type Account struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	Platform       link.Platform
	ExternalID     *string // the platform's own id of the account; nil while unknown
	SourceID       *string // the id that a source uses for the account, or a result of userNameID; nil while unknown
	Username       string  // the handle; accounts can change it
	HandleCurrent  bool    // false if the account no longer has the handle Username
	Name           *string
	Link           string
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`

	Tracked      bool
	Removed      bool // the account was tracked, and its tracking was stopped
	TrackingType *TrackingType
	TrackedAt    *db.Instant
	DiscoveredAt *db.Instant // when a fetch last listed all new videos of the account; nil if no fetch has done so yet
	CheckedAt    *db.Instant // time of the last successful fetch of the account
	ListedDepth  *int        // the length of the longest list of existing videos that was fetched in ended tracking periods of the account; see coveredDepth. Org.Account and ListAccounts do not set it.
	Private      bool
	Empty        bool // true if the account has no videos
	Bio          *string
	ProfileLink  *string // the link that the account's profile shows

	LatestFollowersCount *int64
	LatestFollowingCount *int64

	// The fields from MeanViews to LastUploadedAt are computed from the account's tracked videos. A field is
	// nil if the needed value, such as the views, is known for no tracked video.
	MeanViews            *float64
	MedianViews          *float64
	MedianViewsNonZero   *float64
	MostViewed           *int64
	PercentOutperform10x *float64 `gorm:"column:percent_outperform_10x"` // percentage of the tracked videos with known views that have at least 10 times the median views
	PercentOutperform25x *float64 `gorm:"column:percent_outperform_25x"` // percentage of the tracked videos with known views that have at least 25 times the median views
	TotalVideosTracked   int64
	Total                db.Counts `gorm:"embedded;embeddedPrefix:total_"`
	LastUploadedAt       *db.Date
	ViewsGained7d        *int64 `gorm:"column:views_gained_7d"` // see GainedIn7Days

	FetchState // FetchStatus is "" if the account was never tracked

	// Labels are the collections that contain the account, ordered by name and id. Org.Account sets Labels. ListAccounts also sets Labels, unless
	// AccountQuery.WithoutLabels is true.
	Labels []*Label `gorm:"-"`
}

// AccountKey returns the key of an account in maps of accounts: the platform, "/" and the handle.
func AccountKey(p link.Platform, handle string) string { return string(p) + "/" + handle }

// statementsForNewAccounts returns the statements that insert new accounts and mark their handles as current. The organisation must not have any of these
// accounts yet.
func statementsForNewAccounts(tx *gorm.DB, accounts []Account) []db.Write {
	rows := make([][]any, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		rows[i] = []any{a.OrganisationID, a.ID, a.Platform, a.Username, true, a.Link, a.CreatedAt, a.TotalVideosTracked}
	}
	columns := []string{"organisation_id uuid", "id uuid", "platform text", "username text", "handle_current boolean", "link text", "created_at bigint",
		"total_videos_tracked bigint"}
	return db.StatementsForInsert(tx, "accounts", columns, rows, "")
}

// TrackingType says which videos of a tracked account are tracked.
type TrackingType string

// The tracking types say which existing videos of an account are tracked. Videos that are uploaded after tracking has begun are always
// tracked, whichever type the account has.
const (
	TrackLatest30  TrackingType = "latest_30"  // track the 30 newest existing videos
	TrackLatest200 TrackingType = "latest_200" // track the 200 newest existing videos
	TrackNewOnly   TrackingType = "new_only"   // track no existing videos
	TrackAll       TrackingType = "all"        // track the existing videos, at most the 5,000 newest
)

// ParseTrackingType returns the tracking type with the given name, or an error if there is no such type.
func ParseTrackingType(s string) (TrackingType, error) {
	switch t := TrackingType(s); t {
	case TrackLatest30, TrackLatest200, TrackNewOnly, TrackAll:
		return t, nil
	}
	return "", fmt.Errorf("tracking_type %q is not one of latest_30, latest_200, new_only, all", s)
}

// TypeOrDefault returns the account's tracking type, or TrackLatest30 if the account has no tracking type.
func (a *Account) TypeOrDefault() TrackingType {
	kind := TrackLatest30
	db.Assign(&kind, a.TrackingType)
	return kind
}
