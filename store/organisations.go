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

// Tier is the service level of an organisation. Rate limits, date ranges and masked values depend on it.
type Tier string

// The tiers of organisations: see section 5 of docs/coverage.md.
const (
	TierLimited Tier = "limited"
	TierBasic   Tier = "basic"
	TierPremium Tier = queue.PremiumTier
)

// Tiers lists every tier, the lowest first.
var Tiers = []Tier{TierLimited, TierBasic, TierPremium}

// LaneOf returns the priority lane of an organisation's scheduled fetches.
func LaneOf(o Organisation) queue.Lane { return queue.LaneOf(string(o.Tier), string(o.Subscription)) }

// Subscription says whether an organisation has a paid subscription. With SubscriptionNone, it has the free plan.
type Subscription string

// The subscription states of organisations.
const (
	SubscriptionActive Subscription = "active"
	SubscriptionNone   Subscription = queue.NoSubscription
)

// Organisation is a tenant of ReelTally.
type Organisation struct {
	ID           uuid.UUID `gorm:"primaryKey"`
	Name         string
	Tier         Tier
	Subscription Subscription
	CreatedAt    db.Instant `gorm:"autoCreateTime:false"`
	// Operator is true if the organisation belongs to the operator of the installation. The
	// organisation's admin tokens then open the page "Operations" about all organisations.
	Operator bool
	// DeletingSince is when DeleteOrganisation began to delete the organisation; nil if the organisation is not being deleted.
	DeletingSince *db.Instant
}

// hasNoSubscription returns true if the organisation has no subscription, so that only a part of its videos and accounts is fetched.
func (o Organisation) hasNoSubscription() bool { return o.Subscription == SubscriptionNone }

// fetchedItems returns how many of n videos or accounts of a request are fetched. The allowance is the maximum number for an
// organisation without a subscription.
func (o Organisation) fetchedItems(n, allowance int) int {
	if o.hasNoSubscription() {
		return min(n, allowance)
	}
	return n
}

// maxNameLength is the highest number of characters of the name of an organisation or token.
const maxNameLength = 100

// CheckName returns an error if the name of an object is empty or too long, or has a forbidden character. The error message contains the kind of the object, such as "token".
func CheckName(kind, name string) error {
	if n := len([]rune(trimName(name))); n == 0 || n > maxNameLength {
		return fmt.Errorf("the %s's name has %d characters; it must have 1 to %d characters", kind, n, maxNameLength)
	}
	if found := ForbiddenCharacter(name, false); found != "" {
		return fmt.Errorf("the %s's name contains %s, which is not allowed in a name", kind, found)
	}
	return nil
}

// trimName removes spaces, tabs, line feeds, form feeds and carriage returns around a name. In Go, these are the characters that \s matches.
func trimName(name string) string { return strings.Trim(name, " \t\n\f\r") }

// CreateOrganisation adds an organisation. Several organisations can have the same name.
func (s *Store) CreateOrganisation(ctx context.Context, name string, tier Tier, sub Subscription) (Organisation, error) {
	if err := CheckName("organisation", name); err != nil {
		return Organisation{}, err
	}
	var o Organisation
	err := s.db.Tx(ctx, func(tx *gorm.DB) (err error) {
		o, err = s.createOrganisation(tx, Organisation{Name: name, Tier: tier, Subscription: sub})
		return err
	})
	return o, err
}

// createOrganisation adds an organisation in the transaction tx. It chooses the id, and removes white space around the name.
func (s *Store) createOrganisation(tx *gorm.DB, o Organisation) (Organisation, error) {
	o.ID, o.Name, o.CreatedAt = db.NewID(), trimName(o.Name), s.db.Now()
	if err := tx.Create(&o).Error; err != nil {
		return Organisation{}, err
	}
	return o, tx.Create(&OrganisationTotals{OrganisationID: o.ID, Version: s.db.Now()}).Error
}

// Organisation returns the organisation with the given id, or ErrNotFound.
func (s *Store) Organisation(ctx context.Context, id uuid.UUID) (Organisation, error) {
	return ReadOrganisation(s.db.Read(ctx), id)
}

// ReadOrganisation does the work of Store.Organisation in the transaction tx. If tx has raised the organisation's version, its tier
// and subscription cannot change before tx ends.
func ReadOrganisation(tx *gorm.DB, id uuid.UUID) (Organisation, error) {
	return db.FindOne[Organisation](tx.Where("id = ?", id), "organisation", id)
}

// Organisations lists all organisations, the oldest first.
func (s *Store) Organisations(ctx context.Context) ([]Organisation, error) {
	var organisations []Organisation
	return organisations, db.Translate(s.db.Read(ctx).Order("created_at, id").Find(&organisations).Error)
}

// SetTier changes an organisation's tier and moves its targets to the new lane. Requests see the new tier within a second. SetTier returns
// ErrNotFound for an unknown organisation. A failed call can be repeated.
func (s *Store) SetTier(ctx context.Context, id uuid.UUID, tier Tier, progress ...func(done, total int64)) error {
	return s.setOrganisation(ctx, id, "tier", tier, progress)
}

// SetSubscription changes an organisation's subscription, and moves targets as SetTier does. If sub
// is active, it also schedules the saved videos and accounts that were not fetched.
func (s *Store) SetSubscription(ctx context.Context, id uuid.UUID, sub Subscription, progress ...func(done, total int64)) error {
	if err := s.setOrganisation(ctx, id, "subscription", sub, progress); err != nil || sub != SubscriptionActive {
		return err
	}
	return s.Org(id).enqueuePending(ctx)
}

// setOrganisation changes a column of an organisation, and then moves the organisation's targets to the lane that follows from the new
// value. It returns ErrNotFound for an unknown organisation.
func (s *Store) setOrganisation(ctx context.Context, id uuid.UUID, column string, value any, progress []func(done, total int64)) error {
	if _, err := s.Organisation(ctx, id); err != nil {
		return err
	}
	return s.changeLane(ctx, id, func(tx *gorm.DB) error {
		return tx.Model(&Organisation{}).Where("id = ?", id).Update(column, value).Error
	}, progress)
}

// SetOperator sets whether an organisation belongs to the operator of the installation. It returns ErrNotFound for an unknown organisation.
// Requests see the change within a second.
func (s *Store) SetOperator(ctx context.Context, id uuid.UUID, operator bool) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		r := tx.Model(&Organisation{}).Where("id = ?", id).Update("operator", operator)
		if r.Error == nil && r.RowsAffected == 0 {
			return db.NotFound("organisation", id.String())
		}
		return r.Error
	})
}

// RenameOrganisation changes the name of an organisation. Several organisations can have the same name. Requests see the new name within a second.
// RenameOrganisation returns ErrNotFound for an unknown organisation, and ErrOrganisationDeleted for one whose deletion has begun.
func (s *Store) RenameOrganisation(ctx context.Context, id uuid.UUID, name string) error {
	if err := CheckName("organisation", name); err != nil {
		return err
	}
	if _, err := s.Organisation(ctx, id); err != nil {
		return err
	}
	return s.db.Change(ctx, id, func(tx *gorm.DB) error { // responses show the name, so the ETags must change
		return tx.Model(&Organisation{}).Where("id = ?", id).Update("name", trimName(name)).Error
	})
}

// changeLane calls changeColumn and then moves the organisation's targets to the resulting lane.
// Concurrent calls are safe, and a failed call can be repeated.
func (s *Store) changeLane(ctx context.Context, org uuid.UUID, changeColumn func(*gorm.DB) error, progress []func(done, total int64)) error {
	var total, done int64
	if len(progress) > 0 {
		err := s.db.Read(ctx).Raw(`SELECT COUNT(*) FROM fetch_subscriptions WHERE organisation_id = ?`, org).Scan(&total).Error
		if err != nil {
			return db.Translate(err)
		}
	}
	after := uuid.Nil
	// Each batch has its own transaction, so that collectors are not blocked for long.
	for first := true; ; first = false {
		var last uuid.UUID
		var n int
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			if err := db.RaiseVersions(tx, s.db.Now(), org); err != nil {
				return err
			}
			if first {
				if err := changeColumn(tx); err != nil {
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
		for _, report := range progress {
			report(done, max(done, total))
		}
		if n < db.InsertChunk {
			return nil
		}
		after = last
	}
}
