package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

const (
	// MaxWebhooks is the highest number of webhooks of an organisation.
	MaxWebhooks = 20
	// PreviousSecretLife is how long deliveries are also signed with the previous secret after the secret has changed.
	PreviousSecretLife = 24 * time.Hour
	// maxOlderSecrets is the highest number of secrets in Webhook.OlderSecrets. If a secret is replaced more often within PreviousSecretLife, the
	// oldest secrets end early.
	maxOlderSecrets = 10
)

// ErrWebhookDisabled reports that nothing can be sent to a webhook, because the webhook is disabled.
var ErrWebhookDisabled = errors.New("the webhook is disabled")

// DisabledReason says why a webhook is disabled.
type DisabledReason string

// The reasons why a webhook is disabled.
const (
	DisabledByRequest DisabledReason = "by_request" // a caller of the API disabled the webhook
	DisabledGone      DisabledReason = "gone"       // the server of the webhook answered with status 410
	DisabledFailing   DisabledReason = "failing"    // all attempts in a period of at least DisableAfter failed
)

// Webhook is an endpoint to which the events of an organisation are sent.
type Webhook struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	URL            string
	Description    string
	EventTypes     string // comma-separated types of events, as the method Types parses them
	Enabled        bool
	DisabledReason *DisabledReason // nil if the webhook is enabled
	CreatedAt      db.Instant      `gorm:"autoCreateTime:false"`
	UpdatedAt      db.Instant      `gorm:"autoUpdateTime:false"` // when a caller of the API last changed the webhook
	// Secret is used to sign deliveries. The store only has it in encrypted form and never decrypts it. Until PreviousSecretUntil,
	// deliveries are also signed with PreviousSecret: see ValidSecrets.
	Secret              []byte
	PreviousSecret      []byte
	PreviousSecretUntil *db.Instant
	OlderSecrets        string      // the secrets before PreviousSecret that are still valid, as JSON of []olderSecret, the newest first; "" if there are none
	RotationID          *uuid.UUID  // the EffectID of the request that last replaced the secret; nil if that request had no idempotency key
	Failures            int         // number of claims with failed attempts since the last successful attempt
	FailingSince        *db.Instant // time of the first failed attempt since the last successful attempt; nil if the last attempt was successful
	LastSuccessAt       *db.Instant // nil if no attempt was successful
}

// olderSecret is an encrypted secret of a webhook, with which deliveries are signed until the time Until.
type olderSecret struct {
	Encrypted []byte     `json:"encrypted"`
	Until     db.Instant `json:"until"`
}

// olderSecrets returns the decoded secrets of OlderSecrets.
func (w *Webhook) olderSecrets() (older []olderSecret, err error) {
	if w.OlderSecrets != "" {
		err = json.Unmarshal([]byte(w.OlderSecrets), &older)
	}
	return older, err
}

// ValidSecrets returns the encrypted secrets with which a delivery is signed at the given time, the newest first.
func (w *Webhook) ValidSecrets(at db.Instant) ([][]byte, error) {
	valid := [][]byte{w.Secret}
	if w.PreviousSecretUntil != nil && *w.PreviousSecretUntil > at {
		valid = append(valid, w.PreviousSecret)
	}
	older, err := w.olderSecrets()
	for _, s := range older {
		if s.Until > at {
			valid = append(valid, s.Encrypted)
		}
	}
	return valid, err
}

// replaceSecret gives the webhook a new secret. The present secret becomes the previous secret. Up to maxOlderSecrets earlier secrets stay valid until
// they expire, because the receiver can still use one of them: the responses with the later secrets can have been lost.
func (w *Webhook) replaceSecret(secret []byte, now db.Instant) error {
	older, err := w.olderSecrets()
	if err != nil {
		return err
	}
	if w.PreviousSecretUntil != nil {
		older = slices.Insert(older, 0, olderSecret{w.PreviousSecret, *w.PreviousSecretUntil})
	}
	older = slices.DeleteFunc(older, func(s olderSecret) bool { return s.Until <= now })
	w.OlderSecrets = ""
	if len(older) > 0 {
		encoded, err := json.Marshal(older[:min(len(older), maxOlderSecrets)])
		if err != nil {
			return err
		}
		w.OlderSecrets = string(encoded)
	}
	until := now.Add(PreviousSecretLife)
	w.PreviousSecret, w.PreviousSecretUntil, w.Secret = w.Secret, &until, secret
	return nil
}

// Types returns the types of the events that are sent to the webhook. An empty list means all types.
func (w *Webhook) Types() []EventType { return parseEventTypes(w.EventTypes) }

// NewWebhook has the values with which CreateWebhook creates a webhook.
type NewWebhook struct {
	ID          uuid.UUID // the EffectID of the request's IdempotencyKey; if it is zero, CreateWebhook makes an id
	URL         string
	Description string
	Types       []EventType // types of the events to send; empty for all types
	Secret      []byte      // the encrypted secret
}

// CreateWebhook makes an enabled webhook, and starts the recording of the organisation's events. It
// returns *LimitError if the organisation has MaxWebhooks webhooks.
func (o *Org) CreateWebhook(ctx context.Context, n NewWebhook) (Webhook, error) {
	now := o.s.db.Now()
	if n.ID == uuid.Nil {
		n.ID = db.NewID()
	}
	w := Webhook{OrganisationID: o.id, ID: n.ID, URL: n.URL, Description: n.Description, EventTypes: eventTypeList(n.Types).String(), Enabled: true,
		CreatedAt: now, UpdatedAt: now, Secret: n.Secret}
	err := o.changeData(ctx, func(t OrgTx) error {
		// If an earlier attempt of this request made the webhook, the webhook only gets the new
		// secret.
		repeated := db.Scoped(t.Tx, "webhooks", o.id).Where("id = ?", w.ID).Update("secret", w.Secret)
		if repeated.Error != nil {
			return repeated.Error
		}
		if repeated.RowsAffected > 0 {
			var err error
			w, err = findWebhook(db.Scoped(t.Tx, "webhooks", o.id), w.ID) // the webhook keeps its times, and can be disabled meanwhile
			return err
		}
		var have int64
		if err := db.Scoped(t.Tx, "webhooks", o.id).Count(&have).Error; err != nil {
			return err
		}
		if have >= MaxWebhooks {
			return limitError(LimitWebhooks, "the organisation has %d webhooks, and at most %[1]d are allowed", MaxWebhooks)
		}
		if err := t.Tx.Create(&w).Error; err != nil {
			return err
		}
		if err := t.enableFeed(); err != nil {
			return err
		}
		return enqueueWebhook(t.Tx, o.id, w.ID, now)
	})
	return w, err
}

// Webhooks returns the organisation's webhooks, the newest first.
func (o *Org) Webhooks(ctx context.Context) ([]Webhook, error) {
	var found []Webhook
	err := o.scopedQuery(ctx, "webhooks").Order("created_at DESC, id DESC").Find(&found).Error
	return found, db.Translate(err)
}

// Webhook returns the webhook with the given id, or ErrNotFound.
func (o *Org) Webhook(ctx context.Context, id uuid.UUID) (Webhook, error) {
	return findWebhook(o.scopedQuery(ctx, "webhooks"), id)
}

// findWebhook returns the webhook with the given id, or ErrNotFound. The parameter webhooks is a query for all webhooks of the organisation.
func findWebhook(webhooks *gorm.DB, id uuid.UUID) (Webhook, error) {
	return db.FindOne[Webhook](webhooks.Where("webhooks.id = ?", id), "webhook", id)
}

// WebhookChange is a change of a webhook. A nil field keeps its value.
type WebhookChange struct {
	URL         *string
	Description *string
	Types       *[]EventType
	Enabled     *bool
}

// UpdateWebhook changes a webhook and returns it. It returns ErrNotFound for an unknown id. If a disabled webhook is enabled, its deliveries with
// remaining attempts are sent. A new URL ends the pause after failed attempts, and the webhook is then not unreachable until an attempt at the new URL
// gets no response. Enabling a webhook and giving it a new URL also reset Failures and FailingSince.
func (o *Org) UpdateWebhook(ctx context.Context, id uuid.UUID, c WebhookChange) (Webhook, error) {
	var w Webhook
	err := o.changeData(ctx, func(t OrgTx) (err error) {
		if w, err = findWebhook(db.Scoped(t.Tx, "webhooks", o.id), id); err != nil {
			return err
		}
		w.UpdatedAt = t.Now
		if c.URL != nil && *c.URL != w.URL {
			w.URL, w.Failures, w.FailingSince = *c.URL, 0, nil // the failures were those of the old URL
			if err := endWebhookPause(t.Tx, o.id, id); err != nil {
				return err
			}
			if err := db.Scoped(t.Tx, "webhook_queue", o.id).Where("webhook_id = ?", id).Update("unreachable", false).Error; err != nil {
				return err
			}
		}
		db.Assign(&w.Description, c.Description)
		if c.Types != nil {
			w.EventTypes = eventTypeList(*c.Types).String()
		}
		switch {
		case c.Enabled == nil || *c.Enabled == w.Enabled:
		case *c.Enabled:
			w.Enabled, w.DisabledReason, w.Failures, w.FailingSince = true, nil, 0, nil
			if err := t.enableFeed(); err != nil {
				return err
			}
			if err := enqueueWebhook(t.Tx, o.id, id, w.UpdatedAt); err != nil { // add the webhook to the queue again, because it was removed when it was disabled
				return err
			}
		default:
			if err := disableWebhook(t.Tx, &w, DisabledByRequest, w.UpdatedAt); err != nil {
				return err
			}
		}
		return saveWebhook(t.Tx, &w)
	})
	return w, err
}

// saveWebhook stores the fields of a webhook that can change.
func saveWebhook(tx *gorm.DB, w *Webhook) error {
	return db.Scoped(tx, "webhooks", w.OrganisationID).Where("webhooks.id = ?", w.ID).Updates(map[string]any{"url": w.URL, "description": w.Description, "event_types": w.EventTypes,
		"enabled": w.Enabled, "disabled_reason": w.DisabledReason, "updated_at": w.UpdatedAt, "failures": w.Failures, "failing_since": w.FailingSince,
		"last_success_at": w.LastSuccessAt, "secret": w.Secret, "previous_secret": w.PreviousSecret, "previous_secret_until": w.PreviousSecretUntil, "older_secrets": w.OlderSecrets, "rotation_id": w.RotationID}).Error
}

// disableWebhook marks a webhook as disabled and removes it from the queue of webhooks. The caller must save the webhook. The deliveries of the
// webhook keep their remaining attempts.
func disableWebhook(tx *gorm.DB, w *Webhook, reason DisabledReason, now db.Instant) error {
	w.Enabled, w.DisabledReason = false, &reason
	return stopSending(tx, w.OrganisationID, w.ID, now)
}

// stopSending removes a webhook from the queue of webhooks. Events are recorded for a further EventRetention, as after a read of the feed.
func stopSending(tx *gorm.DB, org, webhook uuid.UUID, now db.Instant) error {
	if err := db.Scoped(tx, "event_feeds", org).Update("read_at", now).Error; err != nil {
		return err
	}
	return tx.Exec("DELETE FROM webhook_queue WHERE organisation_id = ? AND webhook_id = ?", org, webhook).Error
}

// DeleteWebhook deletes a webhook. It returns ErrNotFound for an unknown id. The webhook's deliveries stay stored until their events are
// deleted.
func (o *Org) DeleteWebhook(ctx context.Context, id uuid.UUID) error {
	return o.changeData(ctx, func(t OrgTx) error {
		deleted := t.Tx.Exec("DELETE FROM webhooks WHERE organisation_id = ? AND id = ?", o.id, id)
		if deleted.Error == nil && deleted.RowsAffected == 0 {
			return db.NotFound("webhook", id.String())
		}
		if deleted.Error != nil {
			return deleted.Error
		}
		return stopSending(t.Tx, o.id, id, t.Now)
	})
}

// RotateWebhookSecret replaces the encrypted secret of a webhook. For the time PreviousSecretLife, deliveries are also signed with the old secret,
// even if the new secret is replaced within this time. RotateWebhookSecret returns ErrNotFound for an unknown id. The parameter effectID is the
// EffectID of the request's IdempotencyKey, or zero.
func (o *Org) RotateWebhookSecret(ctx context.Context, id, effectID uuid.UUID, secret []byte) (Webhook, error) {
	var w Webhook
	err := o.changeData(ctx, func(t OrgTx) (err error) {
		if w, err = findWebhook(db.Scoped(t.Tx, "webhooks", o.id), id); err != nil {
			return err
		}
		w.UpdatedAt = t.Now
		if effectID != uuid.Nil && w.RotationID != nil && *w.RotationID == effectID {
			// An earlier attempt of this request stored w.Secret, but the caller never received that secret.
			w.Secret = secret
			return saveWebhook(t.Tx, &w)
		}
		if err := w.replaceSecret(secret, w.UpdatedAt); err != nil {
			return err
		}
		if w.RotationID = nil; effectID != uuid.Nil {
			w.RotationID = &effectID
		}
		return saveWebhook(t.Tx, &w)
	})
	return w, err
}

// TestWebhook records a test event and returns its delivery. It can return ErrNotFound and
// ErrWebhookDisabled. The parameter effectID is the EffectID of the request's IdempotencyKey, or
// zero.
func (o *Org) TestWebhook(ctx context.Context, id, effectID uuid.UUID) (Delivery, error) {
	var made Delivery
	err := o.changeData(ctx, func(t OrgTx) error {
		w, repeated, err := t.enabledWebhook(id, effectID)
		if err != nil || repeated != nil {
			db.Assign(&made, repeated)
			return err
		}
		// This webhook is the only receiver. It gets the test event whatever types of events it asked for.
		recorder := EventRecorder{tx: t.Tx, at: t.Now, receivers: map[uuid.UUID][]receiver{o.id: {{id: w.ID}}}}
		recorder.addEvent(o.id, EventWebhookTest, EventData{Webhook: &EventWebhook{ID: w.ID, URL: w.URL}})
		recorder.pending[0].delivery = effectID
		if err := recorder.Save(); err != nil {
			return err
		}
		if err := endWebhookPause(t.Tx, o.id, w.ID); err != nil {
			return err
		}
		return db.Scoped(t.Tx, "webhook_deliveries", o.id).Where("position = ?", recorder.pending[0].Position).Take(&made).Error
	})
	return made, err
}

// enabledWebhook returns a webhook, or ErrWebhookDisabled. If an earlier attempt of the request has already
// created the delivery with the id effectID, it returns this delivery and no error.
func (t OrgTx) enabledWebhook(id, effectID uuid.UUID) (Webhook, *Delivery, error) {
	w, err := findWebhook(db.Scoped(t.Tx, "webhooks", t.id), id)
	if err != nil {
		return w, nil, err
	}
	var repeated []Delivery
	if err := db.Scoped(t.Tx, "webhook_deliveries", t.id).Where("webhook_id = ? AND id = ?", id, effectID).Limit(1).Find(&repeated).Error; err != nil {
		return w, nil, err
	}
	switch {
	case len(repeated) == 1:
		return w, &repeated[0], nil
	case !w.Enabled:
		return w, nil, ErrWebhookDisabled
	}
	return w, nil, nil
}

// ReplayDelivery makes a new delivery of an earlier delivery's event. The new delivery is due immediately. ReplayDelivery can return ErrNotFound and
// ErrWebhookDisabled. For effectID, see TestWebhook.
func (o *Org) ReplayDelivery(ctx context.Context, webhook, id, effectID uuid.UUID) (Delivery, error) {
	var made Delivery
	err := o.changeData(ctx, func(t OrgTx) error {
		_, repeated, err := t.enabledWebhook(webhook, effectID)
		if err != nil || repeated != nil {
			db.Assign(&made, repeated)
			return err
		}
		earlier, err := db.FindOne[Delivery](db.Scoped(t.Tx, "webhook_deliveries", o.id).Where("webhook_id = ? AND id = ?", webhook, id), "delivery", id)
		if err != nil {
			return err
		}
		made = newDelivery(o.id, webhook, effectID, Event{ID: earlier.EventID, Type: earlier.EventType, Position: earlier.Position}, t.Now)
		if err := t.Tx.Create(&made).Error; err != nil {
			return err
		}
		if err := endWebhookPause(t.Tx, o.id, webhook); err != nil {
			return err
		}
		return makeWebhooksDue(t.Tx, t.Now, []db.RowKey{{Org: o.id, ID: webhook}})
	})
	return made, err
}

// DeliveryQuery selects the deliveries to a webhook.
type DeliveryQuery struct {
	WebhookID uuid.UUID
	Order     db.Order // the column is one of DeliveryOrders
	Window    db.Window
}

// DeliveryOrders are the columns by which deliveries can be ordered.
var DeliveryOrders = db.SortColumns{"created_at": db.SortBy("webhook_deliveries", "created_at", db.IntegerColumn)}

// ListDeliveries returns a list of the deliveries to a webhook, or ErrNotFound for an unknown webhook.
func (o *Org) ListDeliveries(ctx context.Context, query DeliveryQuery) (*db.List[Delivery], error) {
	if _, err := o.Webhook(ctx, query.WebhookID); err != nil {
		return nil, err
	}
	q := o.scopedQuery(ctx, "webhook_deliveries").Where("webhook_deliveries.webhook_id = ?", query.WebhookID)
	var total int64
	if err := q.Session(&gorm.Session{}).Count(&total).Error; err != nil {
		return nil, db.Translate(err)
	}
	return db.ReadList(ctx, o.s.db, q, db.ListSpec[Delivery]{Sort: DeliveryOrders, Table: "webhook_deliveries", Columns: deliveryColumns,
		ID: func(d *Delivery) uuid.UUID { return d.ID }, Total: total}, query.Order, query.Window)
}
