package store

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// What operators are told of collecting, over all organisations. It names nobody and nothing that is tracked.

// FreshWithin are the ages by which QueueCounts tells how old numbers are, the youngest first.
var FreshWithin = [...]time.Duration{time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 36 * time.Hour,
	2 * 24 * time.Hour, 7 * 24 * time.Hour}

// FetchedBy is the age by which whatever is asked for should have been fetched: a turn a day, and half a day to spare.
const FetchedBy = 36 * time.Hour

// QueueCounts counts the targets of one platform, kind, lane and state.
type QueueCounts struct {
	Platform  link.Platform
	Kind      Kind
	Lane      Lane
	State     string
	Targets   int64
	Failing   int64    // the last fetch failed
	Due       int64    // the turn has come
	OldestDue *Instant // since when the first of these waits; nil when none is due
	Never     int64    // never fetched
	Overdue   int64    // of these, those that were asked for longer than FetchedBy ago
	// Fresh counts those fetched within each of FreshWithin.
	Fresh [len(FreshWithin)]int64
}

// QuotaUse is what was reserved of a budget in a window.
type QuotaUse struct {
	Source string // the source's name, a slash and the budget's
	Window string `gorm:"column:win"`
	Used   int64
}

// Collecting is the state of all collecting at a moment.
type Collecting struct {
	At Instant
	// Queue is by platform, kind, lane and state; a combination without targets is left out.
	Queue []QueueCounts
	// Pauses are those of sources and budgets, by name; one whose BlockedUntil has passed is over, but its source has not answered since.
	Pauses map[string]Pause
	Quotas []QuotaUse
	// Collectors say when each collector was last seen, the latest first.
	Collectors []Instant
}

// Collecting reads the state of all collecting. It reads the whole queue: for a million targets some tenths of a second, on SQLite seconds. Callers keep
// the answer for a while.
func (s *Store) Collecting(ctx context.Context) (Collecting, error) {
	c := Collecting{At: s.now()}
	var err error
	if c.Queue, err = queueCounts(s.read.WithContext(ctx), c.At); err != nil {
		return c, translate(err)
	}
	if c.Pauses, err = s.Pauses(ctx); err != nil {
		return c, err
	}
	if err := s.read.WithContext(ctx).Raw(`SELECT source, win, used FROM quota_windows ORDER BY source, win`).Scan(&c.Quotas).Error; err != nil {
		return c, translate(err)
	}
	err = s.read.WithContext(ctx).Raw(`SELECT seen_at FROM collectors ORDER BY seen_at DESC`).Scan(&c.Collectors).Error
	return c, translate(err)
}

func queueCounts(db *gorm.DB, now Instant) (counts []QueueCounts, err error) {
	query := strings.Builder{}
	query.WriteString(`SELECT source, kind, lane, state, COUNT(*), COUNT(CASE WHEN attempts > 0 THEN 1 END), COUNT(CASE WHEN next_at <= ? THEN 1 END),
 MIN(CASE WHEN next_at <= ? THEN next_at END), COUNT(CASE WHEN fetched_at IS NULL THEN 1 END),
 COUNT(CASE WHEN fetched_at IS NULL AND requested_at < ? THEN 1 END)`)
	args := []any{now, now, now.Add(-FetchedBy)}
	for _, age := range FreshWithin {
		query.WriteString(`, COUNT(CASE WHEN fetched_at >= ? THEN 1 END)`)
		args = append(args, now.Add(-age))
	}
	query.WriteString(` FROM fetch_targets WHERE bucket = ? GROUP BY source, kind, lane, state ORDER BY source, kind, lane, state`)
	rows, err := db.Raw(query.String(), append(args, bucket)...).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var c QueueCounts
		into := []any{&c.Platform, &c.Kind, &c.Lane, &c.State, &c.Targets, &c.Failing, &c.Due, &c.OldestDue, &c.Never, &c.Overdue}
		for i := range c.Fresh {
			into = append(into, &c.Fresh[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		counts = append(counts, c)
	}
	return counts, rows.Err()
}

// WhyFailing is what was said last of one of a platform's targets that are parked or whose last fetch failed, "" when there is none.
// It reads until it finds one: ask where they are many.
func (s *Store) WhyFailing(ctx context.Context, p link.Platform) (detail string, err error) {
	err = s.read.WithContext(ctx).Raw(`SELECT detail FROM fetch_targets
 WHERE bucket = ? AND source = ? AND (state = ? OR attempts > 0) AND detail <> '' LIMIT 1`, bucket, p, StateParked).Scan(&detail).Error
	return detail, translate(err)
}

// Engine is the database as a program.
type Engine struct {
	Name    string // sqlite or postgres
	Version string
	Now     *time.Time // its clock; nil where it has none of its own
}

// Engine asks the database what it is. It names no table and goes beside the rules for statements, which allow for no clock of
// the database's.
func (s *Store) Engine(ctx context.Context) (Engine, error) {
	e := Engine{Name: s.dialect.name()}
	err := s.pools[0].QueryRowContext(ctx, s.dialect.aboutQuery()).Scan(&e.Version, &e.Now)
	return e, translate(err)
}
