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

// Account is whoever posts videos (interface.md 6). An account that is only linked from a video is not tracked:
// nothing is collected for it but what its videos tell.
//
// Handles change hands and are used again, so that a platform's own id wins over a handle: HandleCurrent is true for
// the one account of the organisation that bears it now.
type Account struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	Platform       link.Platform
	ExternalID     *string // the platform's own id, where it is known
	SourceID       *string // what its source calls it where that is not the platform's own id, as AccountFacts.SourceID
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
	CheckedAt    *db.Instant // the last fetch of the account that succeeded
	Private      bool
	Empty        bool // it has no videos
	Bio          *string
	ProfileLink  *string // the link in the profile

	LatestFollowersCount *int64
	LatestFollowingCount *int64

	// Over the latest counts of its tracked videos; nil while none has counts.
	MeanViews            *float64
	MedianViews          *float64
	MedianViewsNonZero   *float64
	MostViewed           *int64
	PercentOutperform10x *float64 `gorm:"column:percent_outperform_10x"` // of its videos, with 10 times the median's views
	PercentOutperform25x *float64 `gorm:"column:percent_outperform_25x"`
	TotalVideosTracked   int64
	TotalViews           *int64
	TotalLikes           *int64
	TotalComments        *int64
	TotalBookmarks       *int64
	TotalShares          *int64
	LastUploadedAt       *db.Date

	// Labels are the collections that the account is in, by name and then id; filled by the reads.
	Labels []Label `gorm:"-"`
}

func AccountKey(p link.Platform, handle string) string { return string(p) + "/" + handle }

// upsertAccountsByHandle makes sure that each account's current handle has a row and writes the row's id into ids,
// by AccountKey.
func upsertAccountsByHandle(tx *gorm.DB, rows []Account, ids map[string]uuid.UUID) error {
	slices.SortFunc(rows, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Username, b.Username))
	})
	for chunk := range slices.Chunk(rows, db.InsertChunk) {
		// The update changes nothing: it is what makes RETURNING name the row that was there.
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

// TrackingType says which of an account's videos are tracked with it.
type TrackingType string

// The tracking types of interface.md 6. All of them go on with what is uploaded later.
const (
	TrackLatest30  TrackingType = "latest_30"
	TrackLatest200 TrackingType = "latest_200"
	TrackNewOnly   TrackingType = "new_only"
	TrackAll       TrackingType = "all"
)

// ParseTrackingType returns the tracking type of that name.
func ParseTrackingType(s string) (TrackingType, error) {
	switch t := TrackingType(s); t {
	case TrackLatest30, TrackLatest200, TrackNewOnly, TrackAll:
		return t, nil
	}
	return "", fmt.Errorf("tracking_type %q is not one of latest_30, latest_200, new_only, all", s)
}

func (a *Account) TypeOrDefault() TrackingType {
	kind := TrackLatest30
	db.Assign(&kind, a.TrackingType)
	return kind
}
