package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// DayRange is a range of days of snapshots_daily. Retention processes one range at a time, and replaces its daily points by weekly points.
type DayRange struct {
	From   Date // first day of the range
	Before Date // first day after the range
	// Partition is true if the range is a month that has its own partition, whose points DropMonth can delete. Otherwise the points must be deleted
	// row by row.
	Partition bool
}

// DayRanges returns the ranges of days before the given day, the oldest first. With monthly
// partitions, each range is a whole month. Otherwise, one range has all days.
func (d *DB) DayRanges(ctx context.Context, before Date) ([]DayRange, error) {
	if !d.dialect.hasPartitions() {
		return []DayRange{{Before: before}}, nil
	}
	months, err := d.monthsBefore(ctx, before)
	if err != nil {
		return nil, err
	}
	ranges := make([]DayRange, len(months))
	for i, month := range months {
		ranges[i] = DayRange{From: month, Before: monthOf(month + 31), Partition: true}
	}
	return ranges, nil
}

// monthsBefore returns the first day of each month that has a partition and ends before the given day, the oldest month first.
func (d *DB) monthsBefore(ctx context.Context, before Date) ([]Date, error) {
	var names []string
	err := d.Read(ctx).Raw(`SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = CAST(CAST(? AS text) AS regclass) ORDER BY c.relname`, "snapshots_daily").Scan(&names).Error
	if err != nil {
		return nil, Translate(err)
	}
	var months []Date
	for _, name := range names {
		digits := strings.TrimPrefix(name, dailyPartition)
		if len(digits) != len("200601") {
			return nil, fmt.Errorf("partition %s of snapshots_daily has an unknown name: the name must be %sYYYYMM", name, dailyPartition)
		}
		month, err := ParseDate(digits[:4] + "-" + digits[4:] + "-01")
		if err != nil {
			return nil, err
		}
		if monthOf(month+31) <= before {
			months = append(months, month)
		}
	}
	return months, nil
}

var (
	// ErrMonthBusy reports that DropMonth did not get its locks, or that the month has daily points that no weekly point replaces yet.
	ErrMonthBusy = errors.New("the month cannot be dropped yet")
	// ErrMonthGone reports that another process has already dropped the partition of the month.
	ErrMonthGone = errors.New("month gone")
)

const (
	// dropAttempts is the number of attempts that one call of DropMonth makes to drop a month. If all of them fail, the retention job calls DropMonth
	// again after an hour.
	dropAttempts = 3
	// dropTimeout is the time limit of one attempt of DropMonth. It is long, because the check before the drop reads all points of the
	// month.
	dropTimeout = 10 * time.Minute
)

// DropMonth drops a month's partition of snapshots_daily, and raises the versions of the
// organisations' data. If checkDrop returns an error, DropMonth returns this error and keeps the
// partition.
func (d *DB) DropMonth(ctx context.Context, orgs []uuid.UUID, month Date, checkDrop func(tx *gorm.DB) error) error {
	for attempt := 1; ; attempt++ {
		err := d.tryDropMonth(ctx, orgs, month, checkDrop)
		if !isLockTimeout(err) {
			return err
		}
		if attempt == dropAttempts {
			return ErrMonthBusy
		}
		if err := waitFor(ctx, lockPause); err != nil {
			return err
		}
	}
}

// tryDropMonth is one attempt of DropMonth.
func (d *DB) tryDropMonth(ctx context.Context, orgs []uuid.UUID, month Date, check func(tx *gorm.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	partition := partitionName(month)
	err := d.changeTables(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL statement_timeout = 0").Error; err != nil { // the context already limits the statements to dropTimeout
			return err
		}
		// With this lock, a second process that drops the same month waits here. Without the lock,
		// both processes would deadlock at the drop.
		if err := tx.Exec("LOCK TABLE " + partition + " IN SHARE ROW EXCLUSIVE MODE").Error; err != nil {
			return err
		}
		if err := check(tx); err != nil {
			return err
		}
		if _, err := RaiseVersionsOfAll(tx, d.Now(), orgs); err != nil { // after the drop, the API returns computed points for the days of this month
			return err
		}
		// Until this statement, other sessions can read the partition.
		return tx.Exec("DROP TABLE " + partition).Error
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P01" { // the partition does not exist
		return ErrMonthGone
	}
	if err != nil {
		return err
	}
	d.partitions.setKnown(month, false)
	return nil
}

// partitionCache remembers which months have a partition. Its methods can be called concurrently.
type partitionCache struct {
	mu     sync.Mutex
	months map[Date]bool
}

// isKnown returns true if the month is known to have a partition. If it returns false, the month can have a partition too.
func (c *partitionCache) isKnown(month Date) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.months[month]
}

// setKnown remembers whether the month has a partition, so that the next write does not ask the database.
func (c *partitionCache) setKnown(month Date, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.months == nil {
		c.months = map[Date]bool{}
	}
	c.months[month] = exists
}

// PreparePartitions creates the monthly partitions of snapshots_daily for at least last month, this
// month and next month. It does nothing on engines without partitions.
func (d *DB) PreparePartitions(ctx context.Context) error {
	today := d.Now().Day()
	return d.CreatePartitions(ctx, today-31, today+62)
}

// CreatePartitions creates the monthly partitions of snapshots_daily for all days from firstDay to lastDay. If it does not get its locks, it tries
// again until ctx ends.
func (d *DB) CreatePartitions(ctx context.Context, firstDay, lastDay Date) error {
	for {
		err := d.EnsurePartitions(ctx, firstDay, lastDay)
		if !isLockTimeout(err) {
			return err
		}
		if stopped := waitFor(ctx, lockPause); stopped != nil {
			return errors.Join(stopped, err)
		}
	}
}

// EnsurePartitions creates the missing monthly partitions of snapshots_daily for all days from firstDay to lastDay. If it does not get a lock within
// lockTimeout, it returns an ErrUnavailable.
func (d *DB) EnsurePartitions(ctx context.Context, firstDay, lastDay Date) error {
	if !d.dialect.hasPartitions() {
		return nil
	}
	for month := monthOf(firstDay); month <= lastDay; month = monthOf(month + 31) {
		if d.partitions.isKnown(month) {
			continue
		}
		if err := d.createPartition(ctx, month); err != nil {
			return fmt.Errorf("cannot create the partition for the month of %s: %w", month, err)
		}
		d.partitions.setKnown(month, true)
	}
	return nil
}

// createPartition creates the partition of a month if it does not exist.
func (d *DB) createPartition(ctx context.Context, month Date) error {
	return d.changeTables(ctx, func(tx *gorm.DB) error {
		if err := partitionLock.Take(tx); err != nil {
			return err
		}
		name := partitionName(month)
		var partitions int64
		err := tx.Raw(`SELECT COUNT(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = CAST(CAST(? AS text) AS regclass) AND c.relname = ?`, "snapshots_daily", name).Scan(&partitions).Error
		if err != nil || partitions > 0 {
			return err
		}
		// PostgreSQL must vacuum the partition often, because only then can histories be read from
		// the index alone.
		if err := tx.Exec("CREATE TABLE " + name + " (LIKE snapshots_daily INCLUDING ALL) WITH (autovacuum_vacuum_insert_scale_factor = 0.02)").Error; err != nil {
			return err
		}
		// CREATE TABLE … PARTITION OF would lock snapshots_daily against reads.
		return tx.Exec(fmt.Sprintf("ALTER TABLE snapshots_daily ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')", name, month, monthOf(month+31))).Error
	})
}

// dailyPartition is the beginning of the name of each partition of snapshots_daily. The year and month follow as YYYYMM.
const dailyPartition = "snapshots_daily_"

// partitionName returns the name of the partition of a month.
func partitionName(month Date) string { return dailyPartition + month.Time().Format("200601") }

// monthOf returns the first day of the month of d.
func monthOf(d Date) Date {
	t := d.Time()
	return DateOf(t.AddDate(0, 0, 1-t.Day()))
}
