package db

import (
	"fmt"

	"gorm.io/gorm"
)

// Lock is a lock that one transaction at a time can hold. It protects rows or tables that do not exist yet.
type Lock int64

// The locks. Their numbers are keys of PostgreSQL's advisory locks.
const (
	partitionLock Lock = 7261350812 // held to create a partition
	SetupLock     Lock = 7261350813 // held to create the first organisation, or a link for it
)

// Take waits until no other transaction holds the lock. The transaction tx then holds it until its end. On engines without row locks, Take does
// nothing, because only one transaction at a time can write.
func (l Lock) Take(tx *gorm.DB) error {
	if !hasRowLocks(tx) {
		return nil
	}
	return tx.Exec(fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", l)).Error
}
