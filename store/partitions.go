package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// dayRange is a range of days of snapshots_daily that is rolled up at once.
type dayRange struct {
	From, Before Date
	// Partition is true if the range is a month with a partition of its own: dropMonth deletes the month's points. Otherwise they are deleted
	// row by row.
	Partition bool
}

// dayRanges returns the ranges of all days before one, the oldest first.
func (d *DB) dayRanges(ctx context.Context, before Date) ([]dayRange, error) {
	if !d.dialect.partitioned() {
		return []dayRange{{Before: before}}, nil
	}
	months, err := d.months(ctx, before)
	if err != nil {
		return nil, err
	}
	ranges := make([]dayRange, len(months))
	for i, month := range months {
		ranges[i] = dayRange{From: month, Before: monthOf(month + 31), Partition: true}
	}
	return ranges, nil
}

// months returns the first days of the months that are wholly before a day and have a partition, the oldest first.
func (d *DB) months(ctx context.Context, before Date) ([]Date, error) {
	var names []string
	err := d.Read(ctx).Raw(`SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = CAST(CAST(? AS text) AS regclass) ORDER BY c.relname`, "snapshots_daily").Scan(&names).Error
	if err != nil {
		return nil, translate(err)
	}
	var months []Date
	for _, name := range names {
		digits := strings.TrimPrefix(name, dailyPartition)
		if len(digits) != len("200601") {
			return nil, fmt.Errorf("partition %s of snapshots_daily is none of ours: they are called %sYYYYMM", name, dailyPartition)
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
	// errMonthBusy: dropMonth did not get the locks that it needs, or the month has new points.
	errMonthBusy = errors.New("month in use")
	// errMonthGone: another process has dropped the month.
	errMonthGone = errors.New("month gone")
)

const (
	// dropAttempts is how often one run tries to drop a month. The next run is an hour later.
	dropAttempts = 3
	// dropTimeout bounds one attempt. Its check reads the whole month.
	dropTimeout = 10 * time.Minute
)

// dropMonth drops a month's partition and raises the versions of the organisations. check runs in the same transaction, before the drop,
// and can refuse it with an error. If dropMonth does not get the locks, it tries again a few times, with pauses in which others can use the
// tables. It returns errMonthBusy or errMonthGone if the month was not dropped.
func (d *DB) dropMonth(ctx context.Context, orgs []uuid.UUID, month Date, check func(tx *gorm.DB) error) error {
	for attempt := 1; ; attempt++ {
		err := d.tryDropMonth(ctx, orgs, month, check)
		if !isLocked(err) {
			return err
		}
		if attempt == dropAttempts {
			return errMonthBusy
		}
		if err := pause(ctx, lockPause); err != nil {
			return err
		}
	}
}

func (d *DB) tryDropMonth(ctx context.Context, orgs []uuid.UUID, month Date, check func(tx *gorm.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	partition := partitionName(month)
	err := d.changeTables(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL statement_timeout = 0").Error; err != nil { // dropTimeout replaces it
			return err
		}
		// Reads continue until the drop. A second process that wants to drop the month waits here. If both could hold this lock, they would
		// deadlock at the drop.
		if err := tx.Exec("LOCK TABLE " + partition + " IN SHARE ROW EXCLUSIVE MODE").Error; err != nil {
			return err
		}
		if err := check(tx); err != nil {
			return err
		}
		if err := raiseVersions(tx, d.Now(), orgs...); err != nil { // daily values become interpolated
			return err
		}
		return tx.Exec("DROP TABLE " + partition).Error
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42P01" { // undefined table
		return errMonthGone
	}
	if err != nil {
		return err
	}
	d.partitions.set(month, false)
	return nil
}
