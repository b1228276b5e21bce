package storetest

import "github.com/reeltally/reeltally/store/internal/db"

// The default numbers of days for which the daily and weekly points of histories are kept.
const (
	DailyDays  = db.DailyDays
	WeeklyDays = db.WeeklyDays
)

// TableClass says how a table is stored if the data is divided between several PostgreSQL servers.
type TableClass = db.TableClass

// TableBound says what limits the size of a table.
type TableBound = db.TableBound

// Reference, Distributed and Coordinator are the values of TableClass. ByInstallation, ByTenantData and ByTime are the values of
// TableBound.
const (
	Reference      = db.Reference
	Distributed    = db.Distributed
	Coordinator    = db.Coordinator
	ByInstallation = db.ByInstallation
	ByTenantData   = db.ByTenantData
	ByTime         = db.ByTime
)

// Tables describes every table of the schema. The key is the name of the table.
var Tables = db.Tables
