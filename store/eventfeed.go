package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// eventFeed is a row of event_feeds. It says whether an organisation's events are recorded.
type eventFeed struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Enabled        bool
	Position       int64      // position of the newest event
	Deleted        int64      // events up to this position can be missing: some were deleted or never recorded
	ReadAt         db.Instant // time of the last read, accurate to feedReadAccuracy, or of a later creation, enabling, disabling or deletion of a webhook
}

// feedReadAccuracy is the accuracy of eventFeed.ReadAt. A read of the feed updates ReadAt only if the stored time is more than an hour old.
const feedReadAccuracy = time.Hour

// enableFeed starts the recording of the organisation's events. If an earlier recording has ended, the events between its end and now are
// missing.
func (t OrgTx) enableFeed() error {
	return t.Tx.Clauses(clause.OnConflict{Columns: db.Columns([]string{"organisation_id"}), DoUpdates: clause.Assignments(map[string]any{
		"deleted": gorm.Expr("CASE WHEN event_feeds.enabled THEN event_feeds.deleted ELSE event_feeds.position END"), "enabled": true, "read_at": t.Now})}).
		Create(&eventFeed{OrganisationID: t.id, Enabled: true, ReadAt: t.Now}).Error
}

// OpenFeed prepares a read of the organisation's events, and starts their recording if it was off. It returns
// two positions. Events up to "missing" can be missing: some were deleted or never recorded. The newest event has the position "newest".
func (o *Org) OpenFeed(ctx context.Context) (missing, newest int64, err error) {
	now := o.s.db.Now()
	var feeds []eventFeed
	if err := o.scopedQuery(ctx, "event_feeds").Find(&feeds).Error; err != nil {
		return 0, 0, db.Translate(err)
	}
	if len(feeds) == 1 && feeds[0].Enabled && feeds[0].ReadAt > now.Add(-feedReadAccuracy) {
		return feeds[0].Deleted, feeds[0].Position, nil
	}
	var feed eventFeed
	err = o.changeData(ctx, func(t OrgTx) error {
		if err := t.enableFeed(); err != nil {
			return err
		}
		return db.Scoped(t.Tx, "event_feeds", o.id).Take(&feed).Error
	})
	return feed.Deleted, feed.Position, err
}

// EventQuery says which events of an organisation ListEvents returns.
type EventQuery struct {
	Types  []EventType // types of the events to list; empty for all types
	Window db.Window
}

// EventOrders are the columns by which events can be ordered.
var EventOrders = db.SortColumns{"position": db.SortBy("events", "position", db.IntegerColumn)}

// EventPosition returns a Position for Window.After. With it, a list of events begins after the event with the given position number and id.
func EventPosition(position int64, id uuid.UUID) db.Position {
	return db.Position{Value: strconv.FormatInt(position, 10), ID: id}
}

// ListEvents returns a list of the organisation's events, the oldest first.
func (o *Org) ListEvents(ctx context.Context, query EventQuery) (*db.List[Event], error) {
	q := o.scopedQuery(ctx, "events")
	if len(query.Types) > 0 {
		q = q.Where("events.type IN ?", query.Types)
	}
	return db.ReadList(ctx, o.s.db, q, db.ListSpec[Event]{Sort: EventOrders, Table: "events", Columns: eventColumns, ID: func(e *Event) uuid.UUID { return e.ID }},
		db.Order{Column: "position"}, query.Window)
}

// eventColumns lists the columns that are read from the table "events" for lists of events.
var eventColumns = []db.Column[Event]{
	{Name: "position", Set: func(e *Event, row *db.Values, i int) { e.Position = row.Count(i) }},
	{Name: "id", Set: func(e *Event, row *db.Values, i int) { e.ID = row.ID(i) }},
	{Name: "type", Set: func(e *Event, row *db.Values, i int) { e.Type = EventType(row.String(i)) }},
	{Name: "created_at", Set: func(e *Event, row *db.Values, i int) { e.CreatedAt = row.Instant(i) }},
	{Name: "data", Set: func(e *Event, row *db.Values, i int) {
		if err := json.Unmarshal([]byte(row.String(i)), &e.Data); err != nil {
			panic(err) // EventRecorder has encoded the JSON, so it is always valid
		}
	}},
}

// DeleteExpiredEvents deletes up to db.DeleteBatch events that are older than db.EventRetention, and their deliveries. It returns the
// number of deleted events. It deletes an event only together with all earlier events of the feed, or after them.
func (o *Org) DeleteExpiredEvents(ctx context.Context) (n int64, err error) {
	before := o.s.db.Now().Add(-db.EventRetention)
	if last, err := o.lastExpiredEvent(o.scopedQuery(ctx, "events"), before, 1); err != nil || last == 0 {
		return 0, db.Translate(err)
	}
	err = o.changeData(ctx, func(t OrgTx) error {
		last, err := o.lastExpiredEvent(db.Scoped(t.Tx, "events", o.id), before, db.DeleteBatch)
		if err != nil || last == 0 {
			return err
		}
		if err := db.Scoped(t.Tx, "event_feeds", o.id).Where("deleted < ?", last).Update("deleted", last).Error; err != nil {
			return err
		}
		deleted := t.Tx.Exec("DELETE FROM events WHERE organisation_id = ? AND position <= ?", o.id, last)
		n = deleted.RowsAffected
		return deleted.Error
	})
	return n, err
}

// lastExpiredEvent reads the given number of events of a query, in the order of the feed. It returns the position of the last event that is older
// than "before" and follows only older events. If the first event of the feed is not older, the position is 0.
func (o *Org) lastExpiredEvent(q *gorm.DB, before db.Instant, events int) (position int64, err error) {
	var first []struct {
		Position  int64
		CreatedAt db.Instant
	}
	if err := q.Select("position", "created_at").Order("position").Limit(events).Scan(&first).Error; err != nil {
		return 0, err
	}
	for _, event := range first {
		if event.CreatedAt >= before {
			break
		}
		position = event.Position
	}
	return position, nil
}

// unusedFeed is a SQL condition on event_feeds. An enabled feed is unused if no webhook is enabled
// and the feed was not read since a given time.
const unusedFeed = `event_feeds.enabled AND event_feeds.read_at < ?
 AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.organisation_id = ? AND w.enabled)`

// PauseUnusedFeed ends the recording of events if the organisation has had no enabled webhook and has not read its events for EventRetention.
func (o *Org) PauseUnusedFeed(ctx context.Context) error {
	before := o.s.db.Now().Add(-db.EventRetention)
	var unused int64
	if err := o.scopedQuery(ctx, "event_feeds").Where(unusedFeed, before, o.id).Count(&unused).Error; err != nil || unused == 0 {
		return db.Translate(err)
	}
	return o.changeData(ctx, func(t OrgTx) error {
		return db.Scoped(t.Tx, "event_feeds", o.id).Where(unusedFeed, before, o.id).Update("enabled", false).Error
	})
}
