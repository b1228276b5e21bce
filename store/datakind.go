package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/internal/db"
)

// DataKind says whether the numbers of a database are made up or real. The first stored number decides. Numbers of the other kind are then refused.
type DataKind string

// The kinds of data. The kind of a database without numbers is NoData.
const (
	NoData     DataKind = ""
	MadeUpData DataKind = "demo" // the sandbox made up the numbers
	RealData   DataKind = "real" // the numbers come from platforms, vendors or imports
)

// SandboxSource is the name of the source of points that the sandbox made up.
const SandboxSource = "sandbox"

// KindOfSource returns MadeUpData for the name SandboxSource, and RealData for the name of any other source.
func KindOfSource(name string) DataKind {
	if name == SandboxSource {
		return MadeUpData
	}
	return RealData
}

// DataKindError reports an attempt to store made-up data in a database with real data, or real data in a database with made-up data. Nothing was
// stored.
type DataKindError struct{ Have, New DataKind }

func (e *DataKindError) Error() string {
	const way = "use another database: set REELTALLY_DATABASE_URL, for example to sqlite:data/%s.db"
	if e.Have == MadeUpData {
		return fmt.Sprintf("this database has made-up numbers of the sandbox, so real numbers cannot be stored in it; "+way, "reeltally")
	}
	return fmt.Sprintf("this database has real numbers, so made-up numbers of the sandbox cannot be stored in it; "+way, "demo")
}

const dataKindSetting = "data_kind"

// DataKind returns whether the numbers in the database are made-up data or real data. It returns NoData if the database has no numbers yet.
func (s *Store) DataKind(ctx context.Context) (DataKind, error) {
	kind, err := dataKind(s.db.ReadCommitted(ctx))
	return kind, db.Translate(err)
}

// RequireDataKind must be called in every transaction that stores numbers. It returns a
// *DataKindError if the stored kind differs. If no kind is stored, it stores the given kind.
func RequireDataKind(tx *gorm.DB, kind DataKind) error {
	have, err := dataKind(tx)
	if err != nil || have == kind {
		return err
	}
	if have == NoData {
		err := tx.Table("settings").Clauses(clause.OnConflict{DoNothing: true}).Create(map[string]any{"name": dataKindSetting, "value": []byte(kind)}).Error
		if err != nil {
			return err
		}
	}
	return CheckDataKind(tx, kind) // another transaction may have decided the kind in the meantime
}

// CheckDataKind returns a *DataKindError if the numbers in the database are of a different kind than the given kind. Unlike RequireDataKind, it never
// stores the given kind.
func CheckDataKind(tx *gorm.DB, kind DataKind) error {
	have, err := dataKind(tx)
	if err != nil || have == kind || have == NoData {
		return err
	}
	return &DataKindError{Have: have, New: kind}
}

// dataKind reads the kind of the database from the table of settings.
func dataKind(tx *gorm.DB) (DataKind, error) {
	var setting struct{ Value []byte }
	err := tx.Table("settings").Select("value").Where("name = ?", dataKindSetting).Take(&setting).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return NoData, nil
	}
	return DataKind(setting.Value), err
}
