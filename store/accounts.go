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

// Account is an account that posts videos (interface.md 6). An untracked account exists only because videos are linked to it. It is not
// fetched.
//
// Handles change, and other accounts use them later. So the platform's own id identifies an account, and HandleCurrent is true for the one
// account of the organisation that has the handle now.
type Account struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	Platform       link.Platform
	ExternalID     *string // the platform's own id; nil while unknown
	SourceID       *string // see AccountFacts.SourceID
	Username       string
	HandleCurrent  bool
	Name           *string
	Link           string
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`

	Tracked      bool
	Removed      bool // was tracked, stopped
	TrackingType *TrackingType
	TrackedAt    *db.Instant
	DiscoveredAt *db.Instant // when its older videos were found
	CheckedAt    *db.Instant // the last successful fetch of the account
	Private      bool
	Empty        bool // it has no videos
	Bio          *string
	ProfileLink  *string // the link in the profile

	LatestFollowersCount *int64
	LatestFollowingCount *int64

	// Statistics of the latest counts of its tracked videos; nil while no video has counts.
	MeanViews            *float64
	MedianViews          *float64
	MedianViewsNonZero   *float64
	MostViewed           *int64
	PercentOutperform10x *float64 `gorm:"column:percent_outperform_10x"` // share of its videos with at least 10 times the median's views
	PercentOutperform25x *float64 `gorm:"column:percent_outperform_25x"`
	TotalVideosTracked   int64
	TotalViews           *int64
	TotalLikes           *int64
	TotalComments        *int64
	TotalBookmarks       *int64
	TotalShares          *int64
	LastUploadedAt       *db.Date

	// Labels are the collections that the account is in, ordered by name and id. Methods that read accounts set them.
	Labels []Label `gorm:"-"`
}

// AccountKey returns a map key for a handle of a platform.
func AccountKey(p link.Platform, handle string) string { return string(p) + "/" + handle }

// upsertAccountsByHandle inserts the accounts whose current handle has no row yet. It writes the ids of all rows into ids, by AccountKey.
func upsertAccountsByHandle(tx *gorm.DB, rows []Account, ids map[string]uuid.UUID) error {
	slices.SortFunc(rows, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Username, b.Username))
	})
	for chunk := range slices.Chunk(rows, db.InsertChunk) {
		// The update changes nothing. It makes RETURNING include existing rows.
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

// The tracking types of interface.md 6. With each of them, videos that are uploaded later are tracked too.
const (
	TrackLatest30  TrackingType = "latest_30"
	TrackLatest200 TrackingType = "latest_200"
	TrackNewOnly   TrackingType = "new_only"
	TrackAll       TrackingType = "all"
)

// ParseTrackingType returns the tracking type with that name.
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
