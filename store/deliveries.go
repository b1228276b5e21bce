package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// DisableAfter limits how long a webhook can fail. If an attempt fails this long or longer after the first failed attempt since the last success, the
	// webhook is disabled.
	DisableAfter = 3 * db.Day
	// firstPause is the pause after a claim with a failed attempt, during which nothing is sent to the webhook. Each further such claim doubles the
	// pause, up to longestPause. A successful attempt resets it.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// retryDelays are the times between the attempts of a delivery. The last attempt is more than 24 hours after the first attempt.
var retryDelays = []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour}

// Delivery is an event that is sent to a webhook, with the result of the last attempt.
type Delivery struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	WebhookID      uuid.UUID
	Position       int64 // position of the event
	EventID        uuid.UUID
	EventType      EventType
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`
	Attempts       int
	NextAt         *db.Instant // when the next attempt is due; nil if no attempt is due any more
	Delivered      bool        // the last attempt was successful
	LastAttemptAt  *db.Instant // nil before the first attempt
	DurationMS     *int64      `gorm:"column:duration_ms"`
	ResponseStatus *int        // status of the last response; nil if there was no response
	ResponseBody   *string     // the first bytes of the last response
	Error          *string     // why the last attempt failed; nil if it was successful
}

// TableName returns the name of the table of deliveries.
func (Delivery) TableName() string { return "webhook_deliveries" }

// deliveryColumns are the columns of webhook_deliveries that are read for lists of deliveries.
var deliveryColumns = []db.Column[Delivery]{
	{Name: "id", Set: func(d *Delivery, row *db.Values, i int) { d.ID = row.ID(i) }},
	{Name: "webhook_id", Set: func(d *Delivery, row *db.Values, i int) { d.WebhookID = row.ID(i) }},
	{Name: "event_id", Set: func(d *Delivery, row *db.Values, i int) { d.EventID = row.ID(i) }},
	{Name: "event_type", Set: func(d *Delivery, row *db.Values, i int) { d.EventType = EventType(row.String(i)) }},
	{Name: "created_at", Set: func(d *Delivery, row *db.Values, i int) { d.CreatedAt = row.Instant(i) }},
	{Name: "attempts", Set: func(d *Delivery, row *db.Values, i int) { d.Attempts = int(row.Count(i)) }},
	{Name: "next_at", Set: func(d *Delivery, row *db.Values, i int) { d.NextAt = row.OptionalInstant(i) }},
	{Name: "delivered", Set: func(d *Delivery, row *db.Values, i int) { d.Delivered = row.IsTrue(i) }},
	{Name: "last_attempt_at", Set: func(d *Delivery, row *db.Values, i int) { d.LastAttemptAt = row.OptionalInstant(i) }},
	{Name: "duration_ms", Set: func(d *Delivery, row *db.Values, i int) { d.DurationMS = row.OptionalInt(i) }},
	{Name: "response_status", Set: func(d *Delivery, row *db.Values, i int) {
		if status, ok := row.Int(i); ok {
			d.ResponseStatus = new(int(status))
		}
	}},
	{Name: "response_body", Set: func(d *Delivery, row *db.Values, i int) { d.ResponseBody = row.OptionalText(i) }},
	{Name: "error", Set: func(d *Delivery, row *db.Values, i int) { d.Error = row.OptionalText(i) }},
}

// newDelivery returns a delivery of an event to a webhook. The delivery is due immediately. If id is zero, the delivery gets a new id.
func newDelivery(org, webhook, id uuid.UUID, e Event, now db.Instant) Delivery {
	if id == uuid.Nil {
		id = db.NewID()
	}
	return Delivery{OrganisationID: org, ID: id, WebhookID: webhook, Position: e.Position, EventID: e.ID, EventType: e.Type, CreatedAt: now, NextAt: &now}
}

// webhookQueueEntry is a row of webhook_queue. It has the due time of a webhook. Before the time ClaimedUntil, no process can claim the webhook.
type webhookQueueEntry struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	WebhookID      uuid.UUID `gorm:"primaryKey"`
	DueAt          db.Instant
	ClaimedUntil   db.Instant
	Token          *uuid.UUID
	Unreachable    bool // the last attempt at the present URL got no response
}

func (webhookQueueEntry) TableName() string { return "webhook_queue" }

// enqueueWebhook adds a webhook to the table webhook_queue. The webhook is due immediately. If the table already contains the webhook, only its due
// time changes.
func enqueueWebhook(tx *gorm.DB, org, id uuid.UUID, now db.Instant) error {
	return tx.Clauses(clause.OnConflict{Columns: db.Columns([]string{"organisation_id", "webhook_id"}), DoUpdates: clause.AssignmentColumns([]string{"due_at"})}).
		Create(&webhookQueueEntry{OrganisationID: org, WebhookID: id, DueAt: now}).Error
}

// makeWebhooksDue sets the due time of webhooks to `now`, unless they are due earlier. It locks their rows in
// webhook_queue. endClaim waits for this lock, so it finds all deliveries that this transaction has added.
func makeWebhooksDue(tx *gorm.DB, now db.Instant, webhooks []db.RowKey) error {
	list, args := db.Keys(webhooks).WithClause(tx)
	return tx.Exec(list+`UPDATE webhook_queue SET due_at = CASE WHEN webhook_queue.due_at > ? THEN ? ELSE webhook_queue.due_at END FROM wanted
 WHERE webhook_queue.organisation_id = wanted.organisation_id AND webhook_queue.webhook_id = wanted.id`, append(args, now, now)...).Error
}

// endWebhookPause ends the pause that follows a failed attempt, so that the webhook can be claimed immediately. If a process has claimed the webhook,
// endWebhookPause does nothing.
func endWebhookPause(tx *gorm.DB, org, webhook uuid.UUID) error {
	return tx.Exec("UPDATE webhook_queue SET claimed_until = 0 WHERE organisation_id = ? AND webhook_id = ? AND token IS NULL", org, webhook).Error
}

// WebhookPauseEnd returns the end of the pause after a failed attempt. Without a pause, it returns 0 or a past time. For a disabled or unknown
// webhook, it returns nil.
func (o *Org) WebhookPauseEnd(ctx context.Context, webhook uuid.UUID) (*db.Instant, error) {
	var found []webhookQueueEntry
	err := o.scopedQuery(ctx, "webhook_queue").Where("webhook_id = ?", webhook).Find(&found).Error
	switch {
	case err != nil || len(found) == 0: // a disabled webhook is not in the queue
		return nil, db.Translate(err)
	case found[0].Token != nil: // a process sends to the webhook now
		return new(db.Instant), nil
	}
	return &found[0].ClaimedUntil, nil
}

// WebhookClaim is the right of one process to send to a webhook. If the process dies, the claim ends and another process can claim the
// webhook.
type WebhookClaim struct {
	OrganisationID uuid.UUID
	WebhookID      uuid.UUID
	token          uuid.UUID
}

// ClaimWebhooks claims webhooks that have a due delivery, ordered by their due times. It claims at most "limit" webhooks. Each claim ends after
// leaseTime.
func (s *Store) ClaimWebhooks(ctx context.Context, limit int, leaseTime time.Duration) ([]WebhookClaim, error) {
	now := s.db.Now()
	const due = "SELECT organisation_id, webhook_id FROM webhook_queue WHERE due_at <= ? AND claimed_until <= ? ORDER BY due_at, webhook_id LIMIT ?"
	var found []webhookQueueEntry
	if err := s.db.Read(ctx).Raw(due, now, now, limit).Scan(&found).Error; err != nil || len(found) == 0 { // this first query takes no locks, because usually no webhook is due
		return nil, db.Translate(err)
	}
	token := db.NewID()
	err := s.db.Tx(ctx, func(tx *gorm.DB) error {
		found = nil
		if err := tx.Raw(due+db.ForUpdateSkipLocked(tx, "webhook_queue"), now, now, limit).Scan(&found).Error; err != nil {
			return err
		}
		for _, e := range found {
			err := tx.Exec("UPDATE webhook_queue SET claimed_until = ?, token = ? WHERE organisation_id = ? AND webhook_id = ?", now.Add(leaseTime), token, e.OrganisationID, e.WebhookID).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	claims := make([]WebhookClaim, len(found))
	for i, e := range found {
		claims[i] = WebhookClaim{OrganisationID: e.OrganisationID, WebhookID: e.WebhookID, token: token}
	}
	return claims, err
}

// DueDelivery is a delivery that is due, with its event.
type DueDelivery struct {
	Delivery
	Event Event
}

// DueDeliveries returns at most "limit" due deliveries of a claim, ordered by due time. It returns
// none if the webhook is disabled, and ErrNotFound if the webhook was deleted, or if the deletion of its organisation has begun.
func (s *Store) DueDeliveries(ctx context.Context, c WebhookClaim, limit int) (Webhook, Organisation, []DueDelivery, error) {
	o := s.Org(c.OrganisationID)
	org, err := s.Organisation(ctx, o.id)
	if err != nil {
		return Webhook{}, Organisation{}, nil, err
	}
	if org.DeletingSince != nil {
		return Webhook{}, org, nil, db.NotFound("webhook", c.WebhookID.String())
	}
	w, err := o.Webhook(ctx, c.WebhookID)
	if err != nil || !w.Enabled {
		return w, org, nil, err
	}
	var due []Delivery
	err = o.scopedQuery(ctx, "webhook_deliveries").Where("webhook_id = ? AND next_at <= ?", w.ID, s.db.Now()).Order("next_at, id").Limit(limit).Find(&due).Error
	if err != nil || len(due) == 0 {
		return w, org, nil, db.Translate(err)
	}
	positions := make([]int64, len(due))
	for i, d := range due {
		positions[i] = d.Position
	}
	var rows []eventRow
	if err := o.scopedQuery(ctx, "events").Where("position IN ?", positions).Find(&rows).Error; err != nil {
		return w, org, nil, db.Translate(err)
	}
	events := map[int64]Event{}
	for _, row := range rows {
		if events[row.Position], err = row.toEvent(); err != nil {
			return w, org, nil, err
		}
	}
	out := make([]DueDelivery, 0, len(due))
	for _, d := range due {
		if event, ok := events[d.Position]; ok { // events can expire between the two reads
			out = append(out, DueDelivery{Delivery: d, Event: event})
		}
	}
	return w, org, out, nil
}

// Attempt is the result of an attempt to send a delivery.
type Attempt struct {
	DeliveryID uuid.UUID
	URL        string // the URL to which the event was sent
	At         db.Instant
	Duration   time.Duration
	Status     int    // status of the response; 0 if there was no response
	Body       string // the first bytes of the response
	Error      string // why the attempt failed; "" if it was successful
}

const statusGone = 410

// FinishClaim stores the results of attempts and ends the claim. It also disables the webhook if
// countAttempts returns a reason. The attempts must be in the order in which they ended.
func (s *Store) FinishClaim(ctx context.Context, c WebhookClaim, attempts []Attempt) error {
	o := s.Org(c.OrganisationID)
	if len(attempts) == 0 {
		return s.db.Tx(ctx, func(tx *gorm.DB) error { return o.endClaim(tx, c, 0, nil) })
	}
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		err := db.RaiseDataVersions(tx, s.db.Now(), o.id)
		if errors.Is(err, db.ErrOrganisationDeleted) {
			return nil // the webhook is deleted together with its organisation
		}
		if err != nil {
			return err
		}
		w, err := findWebhook(db.Scoped(tx, "webhooks", o.id), c.WebhookID)
		if errors.Is(err, db.ErrNotFound) {
			return nil // the webhook was deleted
		}
		if err != nil {
			return err
		}
		if err := o.saveAttempts(tx, c.WebhookID, attempts); err != nil {
			return err
		}
		// Attempts at an earlier URL do not count for the present URL.
		counted := slices.DeleteFunc(slices.Clone(attempts), func(a Attempt) bool { return a.URL != w.URL })
		reason := w.countAttempts(counted)
		if w.Enabled && reason != nil {
			recorder, err := NewEventRecorder(tx, s.db.Now(), o.id)
			if err != nil {
				return err
			}
			if err := disableWebhook(tx, &w, *reason, s.db.Now()); err != nil {
				return err
			}
			recorder.addDisabledWebhook(&w)
			if err := recorder.Save(); err != nil {
				return err
			}
		}
		if err := saveWebhook(tx, &w); err != nil {
			return err
		}
		pause := time.Duration(0)
		if w.Failures > 0 {
			pause = min(longestPause, firstPause<<min(w.Failures-1, 16))
		}
		var unreachable *bool
		if n := len(counted); n > 0 {
			unreachable = new(counted[n-1].Status == 0)
		}
		return o.endClaim(tx, c, pause, unreachable)
	})
}

// countAttempts updates Failures, FailingSince and LastSuccessAt with the attempts of one claim, but does not store them. If the
// webhook must be disabled, it returns the reason.
func (w *Webhook) countAttempts(attempts []Attempt) *DisabledReason {
	var reason *DisabledReason
	failuresBefore := w.Failures
	for _, a := range attempts {
		if a.Error == "" {
			w.Failures, w.FailingSince, w.LastSuccessAt = 0, nil, &a.At
			failuresBefore, reason = 0, nil
			continue
		}
		w.Failures = failuresBefore + 1 // all failed attempts of a claim count once: they run at the same time, so one short failure of the receiver can cause all of them
		if w.FailingSince == nil {
			w.FailingSince = &a.At
		}
		switch {
		case a.Status == statusGone:
			return new(DisabledGone)
		case w.FailingSince.Add(DisableAfter) <= a.At:
			reason = new(DisabledFailing)
		}
	}
	return reason
}

// saveAttempts stores the results of attempts to send deliveries to a webhook. Each result is stored in the row of its delivery.
func (o *Org) saveAttempts(tx *gorm.DB, webhook uuid.UUID, attempts []Attempt) error {
	ids := make([]uuid.UUID, len(attempts))
	for i, a := range attempts {
		ids[i] = a.DeliveryID
	}
	var stored []Delivery
	if err := db.Scoped(tx, "webhook_deliveries", o.id).Where("webhook_id = ? AND id IN ?", webhook, ids).Find(&stored).Error; err != nil {
		return err
	}
	byID := map[uuid.UUID]Delivery{}
	for _, d := range stored {
		byID[d.ID] = d
	}
	for _, a := range attempts {
		d, ok := byID[a.DeliveryID]
		if !ok {
			continue // the delivery was deleted together with its event
		}
		d.Attempts++
		changes := map[string]any{"attempts": d.Attempts, "last_attempt_at": a.At, "duration_ms": a.Duration.Milliseconds(), "delivered": a.Error == "",
			"next_at": nil, "response_status": nil, "response_body": nil, "error": nil}
		if a.Status != 0 {
			changes["response_status"], changes["response_body"] = a.Status, a.Body
		}
		if a.Error != "" {
			changes["error"] = a.Error
			if d.Attempts <= len(retryDelays) {
				changes["next_at"] = a.At.Add(retryDelays[d.Attempts-1])
			}
		}
		if err := db.Scoped(tx, "webhook_deliveries", o.id).Where("webhook_deliveries.id = ?", d.ID).Updates(changes).Error; err != nil {
			return err
		}
	}
	return nil
}

// notDue is the due time of a webhook that has nothing to send.
const notDue = db.Instant(1) << 62

// endClaim ends a claim, starts the pause, and sets the webhook's due time and the column unreachable. If unreachable is nil, the column keeps its
// value. endClaim does nothing if the webhook was disabled, deleted, or claimed by another process.
func (o *Org) endClaim(tx *gorm.DB, c WebhookClaim, pause time.Duration, unreachable *bool) error {
	// This UPDATE locks the row in webhook_queue. A transaction that adds a delivery waits for the
	// lock, and then makes the webhook due.
	locked := tx.Exec("UPDATE webhook_queue SET claimed_until = ?, token = NULL, unreachable = COALESCE(?, unreachable) WHERE organisation_id = ? AND webhook_id = ? AND token = ?",
		o.s.db.Now().Add(pause), unreachable, o.id, c.WebhookID, c.token)
	if locked.Error != nil || locked.RowsAffected == 0 {
		return locked.Error
	}
	due := notDue
	var next *db.Instant
	err := db.Scoped(tx, "webhook_deliveries", o.id).Where("webhook_id = ? AND next_at IS NOT NULL", c.WebhookID).Select("MIN(next_at)").Scan(&next).Error
	if err != nil {
		return err
	}
	if next != nil { // a past due time becomes now, so webhooks that were due before now are claimed first
		due = max(*next, o.s.db.Now())
	}
	return tx.Exec("UPDATE webhook_queue SET due_at = ? WHERE organisation_id = ? AND webhook_id = ?", due, o.id, c.WebhookID).Error
}
