package store

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// EventType is the type of an event.
type EventType string

// The types of events. docs/webhooks.md says when each event is recorded.
const (
	EventVideoMetrics    EventType = "video.metrics.updated"
	EventVideoMilestone  EventType = "video.milestone.reached"
	EventVideoOutlier    EventType = "video.outlier.detected"
	EventVideoViewsFell  EventType = "video.views.fell"
	EventVideoStatus     EventType = "video.status.changed"
	EventVideoRemoved    EventType = "video.removed"
	EventVideoDiscovered EventType = "account.video.discovered"
	EventAccountMetrics  EventType = "account.metrics.updated"
	EventAccountStatus   EventType = "account.status.changed"
	EventWebhookDisabled EventType = "webhook.disabled"
	EventWebhookTest     EventType = "webhook.test"
)

// EventTypes lists all types of events.
var EventTypes = []EventType{EventVideoMetrics, EventVideoMilestone, EventVideoOutlier, EventVideoViewsFell, EventVideoStatus, EventVideoRemoved,
	EventVideoDiscovered, EventAccountMetrics, EventAccountStatus, EventWebhookDisabled, EventWebhookTest}

// Event is a change of an organisation's data, or of one of its webhooks.
type Event struct {
	// Position orders the events of the organisation. An event that is committed later has a higher position.
	Position  int64
	ID        uuid.UUID
	Type      EventType
	CreatedAt db.Instant
	Data      EventData
}

// EventData says what an event is about. It is stored as JSON. Fields that do not belong to the type of the event are nil.
type EventData struct {
	Video     *EventVideo   `json:"video,omitempty"`
	Account   *EventAccount `json:"account,omitempty"`
	Threshold *Threshold    `json:"threshold,omitempty"` // the threshold that a video has reached
	Webhook   *EventWebhook `json:"webhook,omitempty"`
}

// EventVideo describes the video to which something has happened.
type EventVideo struct {
	ID        uuid.UUID     `json:"id"`
	Link      string        `json:"link"`
	Platform  link.Platform `json:"platform"`
	Username  string        `json:"username"`
	AccountID *uuid.UUID    `json:"account_id"`
	Removed   bool          `json:"removed"`
	VideoState
	Previous *VideoState `json:"previous,omitempty"` // the state of the video before the event; nil if the event does not change the state
}

// VideoState has the numbers and the fetch status of a video at one time, as events report them.
type VideoState struct {
	db.Counts
	Engagement        *int64      `json:"engagement"`
	UpdatedAt         *db.Instant `json:"updated_at"`
	OutlierMultiplier *float64    `json:"outlier"`
	Status            FetchStatus `json:"status"`
}

// EventAccount describes the account to which something has happened.
type EventAccount struct {
	ID       uuid.UUID     `json:"id"`
	Link     string        `json:"link"`
	Platform link.Platform `json:"platform"`
	Username string        `json:"username"`
	AccountState
	Previous *AccountState `json:"previous,omitempty"` // the state of the account before the event; nil if the event does not change the state
}

// AccountState has the numbers and the fetch status of an account at one time, as events report them.
type AccountState struct {
	Followers *int64      `json:"followers"`
	Following *int64      `json:"following"`
	CheckedAt *db.Instant `json:"checked_at"`
	Status    FetchStatus `json:"status"`
}

// Threshold is a round value that the views or the outlier multiplier of a video have reached, such as a million views.
type Threshold struct {
	Member string `json:"member"` // thresholdViews if the views have reached Value; thresholdOutlier if the outlier multiplier has reached it
	Value  int64  `json:"value"`
}

// The values of Threshold.Member. They are also names of fields in the JSON of a video.
const (
	thresholdViews   = "latest_views"
	thresholdOutlier = "outlier_multiplier"
)

var (
	viewThresholds    = []int64{1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000}
	outlierThresholds = []int64{10, 25}
)

// EventWebhook describes the webhook that was disabled or tested.
type EventWebhook struct {
	ID     uuid.UUID       `json:"id"`
	URL    string          `json:"url"`
	Reason *DisabledReason `json:"reason"` // why the webhook was disabled; nil in a test event
}

func videoState(v *Video) VideoState {
	return VideoState{Counts: v.Latest, Engagement: v.LatestEngagement, UpdatedAt: v.LatestUpdatedAt, OutlierMultiplier: v.OutlierMultiplier, Status: v.FetchStatus}
}

// eventVideo describes a video for an event. If the event changes the state of the video, stateBefore is the state before the event. Otherwise
// stateBefore is nil.
func eventVideo(v *Video, stateBefore *VideoState) *EventVideo {
	return &EventVideo{ID: v.ID, Link: v.Link, Platform: v.Platform, Username: v.Username, AccountID: v.LinkedAccountID, Removed: v.Removed,
		VideoState: videoState(v), Previous: stateBefore}
}

// eventAccount describes an account for an event. If the event changes the state of the account, stateBefore is the state before the event. Otherwise
// stateBefore is nil.
func eventAccount(a *Account, stateBefore *AccountState) *EventAccount {
	return &EventAccount{ID: a.ID, Link: a.Link, Platform: a.Platform, Username: a.Username, AccountState: accountState(a), Previous: stateBefore}
}

func accountState(a *Account) AccountState {
	return AccountState{Followers: a.LatestFollowersCount, Following: a.LatestFollowingCount, CheckedAt: a.CheckedAt, Status: a.FetchStatus}
}

// EventRecorder records events in one transaction. It ignores organisations whose event feed is not
// enabled. The caller adds events and then calls Save.
type EventRecorder struct {
	tx        *gorm.DB
	at        db.Instant
	receivers map[uuid.UUID][]receiver // the key is an organisation whose events are recorded; the value has the enabled webhooks of this organisation
	pending   []pendingEvent
}

// receiver is an enabled webhook and the types of the events that it gets.
type receiver struct {
	id    uuid.UUID
	types eventTypeList
}

// pendingEvent is an event that is not saved yet.
type pendingEvent struct {
	org uuid.UUID
	Event
	delivery uuid.UUID // id of the delivery of a test event; if it is zero, each delivery of the event gets a new id
}

// NewEventRecorder returns a recorder for the events of organisations. The transaction must already
// have raised the organisations' versions, so that no other transaction can change the webhooks.
func NewEventRecorder(tx *gorm.DB, eventTime db.Instant, orgs ...uuid.UUID) (*EventRecorder, error) {
	r := &EventRecorder{tx: tx, at: eventTime, receivers: map[uuid.UUID][]receiver{}}
	if orgs = db.Distinct(orgs); len(orgs) == 0 {
		return r, nil
	}
	type feed struct {
		OrganisationID uuid.UUID
		ID             *uuid.UUID
		EventTypes     *string
	}
	rows, err := db.FindRows[feed](tx, db.Orgs(orgs), `SELECT f.organisation_id, w.id, w.event_types FROM wanted CROSS JOIN event_feeds f
 LEFT JOIN webhooks w ON w.organisation_id = f.organisation_id AND w.enabled
 WHERE f.organisation_id = {org} AND f.enabled ORDER BY f.organisation_id, w.id`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		of := r.receivers[row.OrganisationID]
		if row.ID != nil {
			of = append(of, receiver{*row.ID, parseEventTypes(*row.EventTypes)})
		}
		r.receivers[row.OrganisationID] = of
	}
	return r, nil
}

// IsRecording returns true if events of the organisation are recorded.
func (r *EventRecorder) IsRecording(org uuid.UUID) bool {
	_, on := r.receivers[org]
	return on
}

// HasEnabledFeed returns true if at least one of the organisations has an enabled event feed, so that its events are recorded.
func (r *EventRecorder) HasEnabledFeed() bool { return len(r.receivers) > 0 }

// addEvent adds an event of the organisation. It does nothing if the events of the organisation are not recorded.
func (r *EventRecorder) addEvent(org uuid.UUID, kind EventType, data EventData) {
	if r.IsRecording(org) {
		r.pending = append(r.pending, pendingEvent{org: org, Event: Event{ID: db.NewID(), Type: kind, CreatedAt: r.at, Data: data}})
	}
}

// AddVideoFetch adds the events that a fetch of a video causes. If "rounded" is true, it adds no
// EventVideoViewsFell, because the source has probably rounded the counts.
func (r *EventRecorder) AddVideoFetch(before, after *Video, rounded bool) {
	org := after.OrganisationID
	if !r.IsRecording(org) {
		return
	}
	was, is := videoState(before), videoState(after)
	if !is.Equal(was.Counts) {
		r.addEvent(org, EventVideoMetrics, EventData{Video: eventVideo(after, &was)})
		if was.Views != nil && is.Views != nil && *is.Views < *was.Views && !rounded {
			r.addEvent(org, EventVideoViewsFell, EventData{Video: eventVideo(after, &was)})
		}
	}
	if was.Views != nil && is.Views != nil { // if the old views are unknown, the video may have reached the threshold long ago
		for _, value := range viewThresholds {
			if *was.Views < value && value <= *is.Views {
				r.addEvent(org, EventVideoMilestone, EventData{Video: eventVideo(after, &was), Threshold: &Threshold{thresholdViews, value}})
			}
		}
	}
	r.addOutlier(was, after)
	// If the first fetch since tracking began changes the counts, add no event about the status: the event about the counts also shows the new status.
	if is.Equal(was.Counts) || !isFirstStatus(before.FetchStatus, after.FetchStatus) {
		r.AddVideoStatus(before, after)
	}
}

// addOutlier adds an event for each outlier threshold that the video has reached since it had the state "was".
func (r *EventRecorder) addOutlier(was VideoState, v *Video) {
	for _, value := range reachedOutlierThresholds(was.OutlierMultiplier, v.OutlierMultiplier) {
		r.addEvent(v.OrganisationID, EventVideoOutlier, EventData{Video: eventVideo(v, &was), Threshold: &Threshold{thresholdOutlier, value}})
	}
}

// reachedOutlierThresholds returns the thresholds that a video reaches when its outlier multiplier changes. A
// multiplier is nil if it is unknown.
func reachedOutlierThresholds(before, after *float64) (reached []int64) {
	for _, value := range outlierThresholds {
		if after != nil && *after >= float64(value) && (before == nil || *before < float64(value)) {
			reached = append(reached, value)
		}
	}
	return reached
}

// AddOutliers adds events about videos that were not fetched, but reach an outlier threshold because the median of their account has changed.
// It must be called before the new multipliers are stored.
func (r *EventRecorder) AddOutliers(stats AccountsStats) error {
	multipliers := map[db.RowKey]*float64{}
	for _, m := range stats.newMultipliers {
		if r.IsRecording(m.video.Org) && len(reachedOutlierThresholds(m.stored, m.computed)) > 0 {
			multipliers[m.video] = m.computed
		}
	}
	if len(multipliers) == 0 {
		return nil
	}
	videos, err := db.FindColumns(r.tx, db.Keys(db.SortedKeys(multipliers)), videoColumns, `SELECT `+db.ColumnNames("videos", videoColumns)+` FROM wanted CROSS JOIN videos
 WHERE videos.organisation_id = {org} AND videos.id = wanted.id ORDER BY videos.organisation_id, videos.id`)
	if err != nil {
		return err
	}
	for i := range videos {
		v := &videos[i]
		was := videoState(v)
		v.OutlierMultiplier = multipliers[v.Key()]
		r.addOutlier(was, v)
	}
	return nil
}

// AddVideoStatus adds an event if the fetch status of a video has changed.
func (r *EventRecorder) AddVideoStatus(before, after *Video) {
	if before.FetchStatus != after.FetchStatus {
		was := videoState(before)
		r.addEvent(after.OrganisationID, EventVideoStatus, EventData{Video: eventVideo(after, &was)})
	}
}

// AddAccountFetch adds the events that follow from a fetch of an account. It compares the account before and after the fetch was written.
func (r *EventRecorder) AddAccountFetch(before, after *Account) {
	was := accountState(before)
	if !equalCounts(was.Followers, after.LatestFollowersCount) || !equalCounts(was.Following, after.LatestFollowingCount) {
		r.addEvent(after.OrganisationID, EventAccountMetrics, EventData{Account: eventAccount(after, &was)})
	}
	if was.Status != after.FetchStatus && !isFirstStatus(was.Status, after.FetchStatus) {
		r.addEvent(after.OrganisationID, EventAccountStatus, EventData{Account: eventAccount(after, &was)})
	}
}

// isFirstStatus returns true if the status changes from pending to ok. The first fetch since tracking
// began has then succeeded.
func isFirstStatus(before, after FetchStatus) bool {
	return before == queue.FetchPending && after == queue.FetchOK
}

// addStoppedVideos adds one event for each video. The event says that the tracking of the video has ended.
func (r *EventRecorder) addStoppedVideos(videos []Video) {
	for i := range videos {
		r.addEvent(videos[i].OrganisationID, EventVideoRemoved, EventData{Video: eventVideo(&videos[i], nil)})
	}
}

// AddDiscoveredVideo adds an event about a video that was found in the list of an account's videos.
func (r *EventRecorder) AddDiscoveredVideo(a *Account, v *Video) {
	r.addEvent(v.OrganisationID, EventVideoDiscovered, EventData{Account: eventAccount(a, nil), Video: eventVideo(v, nil)})
}

// addDisabledWebhook adds an event about a webhook that was disabled. The event is sent to the other webhooks of the organisation.
func (r *EventRecorder) addDisabledWebhook(w *Webhook) {
	others := slices.DeleteFunc(r.receivers[w.OrganisationID], func(to receiver) bool { return to.id == w.ID })
	r.receivers[w.OrganisationID] = others
	r.addEvent(w.OrganisationID, EventWebhookDisabled, EventData{Webhook: &EventWebhook{ID: w.ID, URL: w.URL, Reason: w.DisabledReason}})
}

func equalCounts(a, b *int64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Save stores the events. For each event, it also stores a delivery to each webhook that gets events of its type.
func (r *EventRecorder) Save() error {
	if len(r.pending) == 0 {
		return nil
	}
	if err := r.skipAnnouncedThresholds(); err != nil {
		return err
	}
	if len(r.pending) == 0 {
		return nil
	}
	if err := r.setPositions(); err != nil {
		return err
	}
	return r.insertEvents()
}

// skipAnnouncedThresholds removes each event whose threshold an earlier event has already announced for the
// video: a count can fall below a threshold and reach it again.
func (r *EventRecorder) skipAnnouncedThresholds() error {
	type announced struct {
		OrganisationID, VideoID uuid.UUID
		Member                  string
		Threshold               int64
	}
	key := func(e pendingEvent) announced {
		return announced{e.org, e.Data.Video.ID, e.Data.Threshold.Member, e.Data.Threshold.Value}
	}
	var rows [][]any
	for _, e := range r.pending {
		if e.Data.Threshold != nil {
			k := key(e)
			rows = append(rows, []any{k.OrganisationID, k.VideoID, k.Member, k.Threshold})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	columns := []string{"organisation_id uuid", "video_id uuid", "member text", "threshold bigint"}
	inserted, err := db.InsertReturning[announced](r.tx, "video_milestones", columns, rows,
		"ON CONFLICT (organisation_id, video_id, member, threshold) DO NOTHING RETURNING organisation_id, video_id, member, threshold")
	if err != nil {
		return err
	}
	fresh := map[announced]bool{}
	for _, k := range inserted {
		fresh[k] = true
	}
	r.pending = slices.DeleteFunc(r.pending, func(e pendingEvent) bool { return e.Data.Threshold != nil && !fresh[key(e)] })
	return nil
}

// setPositions gives each event the next position in its organisation's event feed. Events become
// visible in this order, because the row in event_feeds stays locked until the commit.
func (r *EventRecorder) setPositions() error {
	count := map[uuid.UUID]int64{}
	for _, e := range r.pending {
		count[e.org]++
	}
	rows := make([][]any, 0, len(count))
	for org, n := range count {
		rows = append(rows, []any{org, n})
	}
	type last struct {
		OrganisationID uuid.UUID
		Position       int64
	}
	list := db.OrgRows{Name: "u", Columns: []string{"organisation_id uuid", "n bigint"}, Rows: rows}
	// The last position is at least r.at, so that a database restored from a backup reuses no position.
	updated, err := db.FindRows[last](r.tx, list, `UPDATE event_feeds SET position = CASE WHEN event_feeds.position + u.n < ? THEN ? ELSE event_feeds.position + u.n END FROM u
 WHERE event_feeds.organisation_id = {org} RETURNING event_feeds.organisation_id, event_feeds.position`, r.at, r.at)
	if err != nil {
		return err
	}
	next := map[uuid.UUID]int64{}
	for _, row := range updated {
		next[row.OrganisationID] = row.Position - count[row.OrganisationID] + 1
	}
	for i := range r.pending {
		e := &r.pending[i]
		e.Position = next[e.org]
		next[e.org]++
	}
	return nil
}

// eventRow is a row of the table events.
type eventRow struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	Position       int64     `gorm:"primaryKey"`
	ID             uuid.UUID
	Type           EventType
	CreatedAt      db.Instant `gorm:"autoCreateTime:false"`
	Data           string
}

func (eventRow) TableName() string { return "events" }

func (r eventRow) toEvent() (Event, error) {
	e := Event{Position: r.Position, ID: r.ID, Type: r.Type, CreatedAt: r.CreatedAt}
	return e, json.Unmarshal([]byte(r.Data), &e.Data)
}

// insertEvents inserts the events and their deliveries. It also sets the due time of the webhooks, so that the deliveries are sent.
func (r *EventRecorder) insertEvents() error {
	var events, deliveries [][]any
	due := map[db.RowKey]bool{}
	for _, e := range r.pending {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		events = append(events, []any{e.org, e.Position, e.ID, string(e.Type), e.CreatedAt, string(data)})
		for _, to := range r.receivers[e.org] {
			if !to.types.contains(e.Type) {
				continue
			}
			d := newDelivery(e.org, to.id, e.delivery, e.Event, r.at)
			deliveries = append(deliveries, []any{d.OrganisationID, d.ID, d.WebhookID, d.Position, d.EventID, string(d.EventType), d.CreatedAt, d.Attempts, d.NextAt, d.Delivered})
			due[db.RowKey{Org: e.org, ID: to.id}] = true
		}
	}
	columns := []string{"organisation_id uuid", "position bigint", "id uuid", "type text", "created_at bigint", "data text"}
	if err := db.Insert(r.tx, "events", columns, events, ""); err != nil {
		return err
	}
	if len(deliveries) == 0 {
		return nil
	}
	columns = []string{"organisation_id uuid", "id uuid", "webhook_id uuid", "position bigint", "event_id uuid", "event_type text", "created_at bigint",
		"attempts integer", "next_at bigint", "delivered boolean"}
	if err := db.Insert(r.tx, "webhook_deliveries", columns, deliveries, ""); err != nil {
		return err
	}
	return makeWebhooksDue(r.tx, r.at, db.SortedKeys(due))
}

// eventTypeList is a list of types of events. An empty list means all types.
type eventTypeList []EventType

// parseEventTypes parses a comma-separated list of types of events. The result of "" is an empty list, which means all types.
func parseEventTypes(s string) eventTypeList {
	if s == "" {
		return nil
	}
	var types eventTypeList
	for name := range strings.SplitSeq(s, ",") {
		types = append(types, EventType(name))
	}
	return types
}

// String returns the list as comma-separated text, which parseEventTypes can parse.
func (l eventTypeList) String() string {
	names := make([]string, len(l))
	for i, t := range l {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}

// contains returns true if the list contains the given type of events. It always returns true if the list is empty, because an empty list means
// all types.
func (l eventTypeList) contains(t EventType) bool { return len(l) == 0 || slices.Contains(l, t) }
