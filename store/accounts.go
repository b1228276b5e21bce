package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// Account is an account of a platform that posts videos. An untracked account is stored only because videos are linked to it, and is not
// fetched.
//
// An account can change its handle, and another account can then use the old handle. So the platform's own id identifies an account.
// HandleCurrent is true if the account has its Username as handle now. Of all accounts of an organisation with a handle, only one has it now.
type Account struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	Platform       link.Platform
	ExternalID     *string // the platform's own id; nil while unknown
	SourceID       *string // the source's own id of the account; nil if the source has none
	Username       string
	HandleCurrent  bool
	Name           *string
	Link           string
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`

	Tracked      bool
	Removed      bool // the account was tracked, and its tracking was stopped
	TrackingType *TrackingType
	TrackedAt    *db.Instant
	DiscoveredAt *db.Instant // when the account's existing videos were found; nil before
	CheckedAt    *db.Instant // time of the last successful fetch of the account
	Private      bool
	Empty        bool // the account has no videos
	Bio          *string
	ProfileLink  *string // the link in the profile

	LatestFollowersCount *int64
	LatestFollowingCount *int64

	// Statistics of the latest counts of the account's tracked videos. The pointers are nil while no video has counts.
	MeanViews            *float64
	MedianViews          *float64
	MedianViewsNonZero   *float64
	MostViewed           *int64
	PercentOutperform10x *float64 `gorm:"column:percent_outperform_10x"` // percentage of tracked videos with at least 10 times the median views
	PercentOutperform25x *float64 `gorm:"column:percent_outperform_25x"` // percentage of tracked videos with at least 25 times the median views
	TotalVideosTracked   int64
	TotalViews           *int64
	TotalLikes           *int64
	TotalComments        *int64
	TotalBookmarks       *int64
	TotalShares          *int64
	LastUploadedAt       *db.Date

	// Labels are the collections that contain the account, ordered by name and id. Methods that read accounts set Labels.
	Labels []Label `gorm:"-"`
}

// AccountKey returns the map key of the account with a handle on a platform.
func AccountKey(p link.Platform, handle string) string { return string(p) + "/" + handle }

// upsertAccountsByHandle inserts the accounts whose handle no account of the organisation has now. It adds the ids of the new and existing
// accounts to ids, with AccountKey as the key.
func upsertAccountsByHandle(tx *gorm.DB, rows []Account, ids map[string]uuid.UUID) error {
	slices.SortFunc(rows, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Username, b.Username))
	})
	for chunk := range slices.Chunk(rows, db.InsertChunk) {
		// The update sets the username to its present value. Without an update, RETURNING would leave out existing rows.
		err := tx.Clauses(
			clause.OnConflict{
				Columns:     []clause.Column{{Name: "organisation_id"}, {Name: "platform"}, {Name: "username"}},
				TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "handle_current"}}},
				DoUpdates:   clause.AssignmentColumns([]string{"username"}),
			},
			clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "platform"}, {Name: "username"}}},
		).Create(&chunk).Error
		if err != nil {
			return err
		}
		for _, r := range chunk {
			ids[AccountKey(r.Platform, r.Username)] = r.ID
		}
	}
	return nil
}

// TrackingType says which videos of an account are tracked.
type TrackingType string

// The tracking types. With every type, videos that are uploaded after tracking has begun are tracked too.
const (
	TrackLatest30  TrackingType = "latest_30"  // the 30 newest videos
	TrackLatest200 TrackingType = "latest_200" // the 200 newest videos
	TrackNewOnly   TrackingType = "new_only"   // no older videos
	TrackAll       TrackingType = "all"        // all videos
)

// ParseTrackingType returns the tracking type with the name s, or an error if there is no such type.
func ParseTrackingType(s string) (TrackingType, error) {
	switch t := TrackingType(s); t {
	case TrackLatest30, TrackLatest200, TrackNewOnly, TrackAll:
		return t, nil
	}
	return "", fmt.Errorf("tracking_type %q is not one of latest_30, latest_200, new_only, all", s)
}

// TypeOrDefault returns the account's tracking type, or TrackLatest30 if it has none.
func (a *Account) TypeOrDefault() TrackingType {
	kind := TrackLatest30
	db.Assign(&kind, a.TrackingType)
	return kind
}
