package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/queue"
)

// Tier is the paid plan of an organisation. Limits, date ranges and masking depend on it.
type Tier string

// The tiers of spec.md, section 5.
const (
	TierLimited Tier = "limited"
	TierBasic   Tier = "basic"
	TierPremium Tier = queue.PremiumTier
)

// Tiers lists every tier, the lowest first.
var Tiers = []Tier{TierLimited, TierBasic, TierPremium}

// LaneOf returns the lane of an organisation's scheduled fetches.
func LaneOf(o Organisation) queue.Lane { return queue.LaneOf(string(o.Tier), string(o.Subscription)) }

// ParseTier returns the tier with that name.
func ParseTier(s string) (Tier, error) {
	for _, t := range Tiers {
		if s == string(t) {
			return t, nil
		}
	}
	return "", fmt.Errorf("tier %q is not one of limited, basic, premium", s)
}

// Subscription says whether an organisation pays. SubscriptionNone is the free plan of spec.md 4.4.
type Subscription string

// The values of Subscription.
const (
	SubscriptionActive Subscription = "active"
	SubscriptionNone   Subscription = queue.NoSubscription
)

// ParseSubscription returns the subscription with that name.
func ParseSubscription(s string) (Subscription, error) {
	switch v := Subscription(s); v {
	case SubscriptionActive, SubscriptionNone:
		return v, nil
	}
	return "", fmt.Errorf("subscription %q is not one of active, none", s)
}

// Organisation is a tenant.
type Organisation struct {
	ID           uuid.UUID `gorm:"primaryKey"`
	Name         string
	Tier         Tier
	Subscription Subscription
	CreatedAt    db.Instant `gorm:"autoCreateTime:false"`
}

const maxNameLength = 100

// CheckName returns an error if a name is empty or too long. what names the thing in the error.
func CheckName(what, name string) error {
	if n := len([]rune(strings.TrimSpace(name))); n == 0 || n > maxNameLength {
		return fmt.Errorf("the %s's name has %d characters; it must have 1 to %d", what, n, maxNameLength)
	}
	return nil
}

// CreateOrganisation adds an organisation. Names need not be unique.
func (s *Store) CreateOrganisation(ctx context.Context, name string, tier Tier, sub Subscription) (Organisation, error) {
	if err := CheckName("organisation", name); err != nil {
		return Organisation{}, err
	}
	o := Organisation{ID: db.NewID(), Name: strings.TrimSpace(name), Tier: tier, Subscription: sub, CreatedAt: s.db.Now()}
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := tx.Create(&o).Error; err != nil {
			return err
		}
		return tx.Create(&OrganisationTotals{OrganisationID: o.ID, Version: s.db.Now()}).Error
	})
	return o, err
}

// Organisation returns one organisation, or ErrNotFound.
func (s *Store) Organisation(ctx context.Context, id uuid.UUID) (Organisation, error) {
	var o Organisation
	err := s.db.Read(ctx).Where("id = ?", id).Limit(1).Find(&o).Error
	if err == nil && o.ID == uuid.Nil {
		err = db.NotFound("organisation", id.String())
	}
	return o, db.Translate(err)
}

// Organisations lists all organisations, the oldest first.
func (s *Store) Organisations(ctx context.Context) ([]Organisation, error) {
	var os []Organisation
	return os, db.Translate(s.db.Read(ctx).Order("created_at, id").Find(&os).Error)
}

// SetTier changes an organisation's tier, or returns ErrNotFound. Requests see the change within a second. The organisation's targets move
// to the lane of the new tier. After an error some targets may not have moved: the same call moves the rest. progress is called after each
// batch of targets.
func (s *Store) SetTier(ctx context.Context, id uuid.UUID, tier Tier, progress ...func(done, total int64)) error {
	return s.setOrganisation(ctx, id, "tier", tier, progress)
}

// SetSubscription changes an organisation's subscription, in the same way as SetTier. When it becomes active, videos and accounts that
// were saved without being fetched are scheduled.
func (s *Store) SetSubscription(ctx context.Context, id uuid.UUID, sub Subscription, progress ...func(done, total int64)) error {
	if err := s.setOrganisation(ctx, id, "subscription", sub, progress); err != nil || sub != SubscriptionActive {
		return err
	}
	return s.Org(id).enqueuePending(ctx)
}

func (s *Store) setOrganisation(ctx context.Context, id uuid.UUID, column string, value any, progress []func(done, total int64)) error {
	return s.changeLane(ctx, id, func(tx *gorm.DB) error {
		r := tx.Model(&Organisation{}).Where("id = ?", id).Update(column, value)
		if r.Error == nil && r.RowsAffected == 0 {
			return db.NotFound("organisation", id.String())
		}
		return r.Error
	}, progress)
}

// changeLane runs change, which changes the lane of an organisation, and then moves the organisation's targets to that lane. The change
// and the first batch of targets are one transaction. More batches follow in transactions of their own: a million targets in one
// transaction would block collectors from acknowledging until their leases end. Each batch reads the current lane, so concurrent changes
// can come in any order, and an interrupted call can be repeated.
func (s *Store) changeLane(ctx context.Context, org uuid.UUID, change func(*gorm.DB) error, progress []func(done, total int64)) error {
	var total, done int64
	if len(progress) > 0 {
		err := s.db.Read(ctx).Raw(`SELECT COUNT(*) FROM fetch_subscriptions WHERE organisation_id = ?`, org).Scan(&total).Error
		if err != nil {
			return db.Translate(err)
		}
	}
	after := uuid.Nil
	for first := true; ; first = false {
		var last uuid.UUID
		var n int
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			if err := db.RaiseVersions(tx, s.db.Now(), org); err != nil {
				return err
			}
			if first {
				if err := change(tx); err != nil {
					return err
				}
			}
			targets, err := queue.SubscriptionsAfter(tx, org, after)
			if n = len(targets); err != nil || n == 0 {
				return err
			}
			last = targets[n-1].SubjectID
			return queue.UpdateLanes(tx, targets)
		})
		if err != nil {
			return err
		}
		done += int64(n)
		for _, tell := range progress {
			tell(done, max(done, total))
		}
		if n < db.InsertChunk {
			return nil
		}
		after = last
	}
}
