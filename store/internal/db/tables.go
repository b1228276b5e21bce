package db

import (
	"time"
)

// TableClass says how a table would be stored in a sharded PostgreSQL. The rules for its keys and statements follow from the class, on
// every engine.
type TableClass string

// The classes.
const (
	// Reference tables are copied to every node. They are small and rarely written.
	Reference TableClass = "reference"
	// Distributed tables are sharded by organisation_id. It must be the first column of every key and be set in every WHERE and JOIN.
	Distributed TableClass = "distributed"
	// Coordinator tables belong to no organisation, and no other table refers to them.
	Coordinator TableClass = "coordinator"
)

// TableBound says what keeps a table from growing without limit.
type TableBound string

// The bounds.
const (
	// ByInstallation: the number of rows depends on the operators and on the program's configuration.
	ByInstallation TableBound = "installation"
	// ByTenantData: the number of rows is proportional to what organisations track and create. Rate limits bound how fast it grows. Rows are
	// deleted together with what they belong to.
	ByTenantData TableBound = "tenant data"
	// ByTime: rows are added as time passes. Retention deletes rows that are older than Table.Retention.
	ByTime TableBound = "time"
)

// Table describes a table.
type Table struct {
	Class TableClass
	Bound TableBound
	// Retention is how long a row is kept after it was last needed. It is set for tables with the bound ByTime.
	Retention time.Duration
}

const (
	// DailyDays is for how many days the point of each day is kept. Older history has one point a week.
	DailyDays = 90
	// WeeklyDays is for how many days the point of each week is kept.
	WeeklyDays = 730
	// RetentionMargin is for how many more days weekly points are kept. The oldest day that a caller can request may lie between two points,
	// and the earlier of them is up to 13 days older.
	RetentionMargin = 14
	// IdempotencyLife is how long an answer is kept for its idempotency key.
	IdempotencyLife = 24 * time.Hour
	// ShortLinkLife is how long the target of a short link is kept.
	ShortLinkLife = 30 * Day
)

const (
	// Day is 24 hours.
	Day = 24 * time.Hour

	// dailyRetention includes up to a month, because PostgreSQL drops whole months, and up to a week, because weeks are rolled up whole.
	dailyRetention  = (DailyDays + 31 + 7) * Day
	weeklyRetention = (WeeklyDays + RetentionMargin + 1) * Day
	// tokenRetention is how long operators still see an expired or revoked token in lists.
	tokenRetention = 90 * Day
	// quotaRetention is how long a window's count is kept after its last change. It is longer than any window.
	quotaRetention = 100 * Day
	// leftoverRetention is how long rows are kept that nothing needs any more, such as a pause that has ended.
	leftoverRetention = 30 * Day
	// collectorRetention is how long a collector that crashed stays in the list: see queue.Queue.Heartbeat.
	collectorRetention = 10 * time.Second
)

// Tables describes every table. A table that is missing here fails the catalog test, and so does a table without a bound.
var Tables = map[string]Table{
	"organisations": {Class: Reference, Bound: ByInstallation},
	"api_tokens":    {Class: Reference, Bound: ByTime, Retention: tokenRetention},
	"settings":      {Class: Reference, Bound: ByInstallation},

	"accounts":            {Class: Distributed, Bound: ByTenantData},
	"videos":              {Class: Distributed, Bound: ByTenantData},
	"video_hashtags":      {Class: Distributed, Bound: ByTenantData},
	"snapshots_daily":     {Class: Distributed, Bound: ByTime, Retention: dailyRetention},
	"snapshots_weekly":    {Class: Distributed, Bound: ByTime, Retention: weeklyRetention},
	"collections":         {Class: Distributed, Bound: ByTenantData},
	"collection_hashtags": {Class: Distributed, Bound: ByTenantData},
	"collection_videos":   {Class: Distributed, Bound: ByTenantData},
	"collection_accounts": {Class: Distributed, Bound: ByTenantData},
	"organisation_totals": {Class: Distributed, Bound: ByTenantData},
	"organisation_days":   {Class: Distributed, Bound: ByTime, Retention: weeklyRetention},

	"organisation_uploads": {Class: Distributed, Bound: ByTenantData},
	"account_days":         {Class: Distributed, Bound: ByTime, Retention: weeklyRetention},
	"idempotency_keys":     {Class: Distributed, Bound: ByTime, Retention: IdempotencyLife},
	"idempotency_usage":    {Class: Distributed, Bound: ByTenantData},

	"fetch_targets":       {Class: Coordinator, Bound: ByTenantData},
	"fetch_subscriptions": {Class: Coordinator, Bound: ByTenantData},
	"org_turns":           {Class: Coordinator, Bound: ByTime, Retention: leftoverRetention},
	"jobs":                {Class: Coordinator, Bound: ByInstallation},
	"quota_windows":       {Class: Coordinator, Bound: ByTime, Retention: quotaRetention},
	"source_pauses":       {Class: Coordinator, Bound: ByTime, Retention: leftoverRetention},
	"source_refusals":     {Class: Coordinator, Bound: ByInstallation},
	"source_tokens":       {Class: Coordinator, Bound: ByInstallation},
	"collectors":          {Class: Coordinator, Bound: ByTime, Retention: collectorRetention},
	"short_links":         {Class: Coordinator, Bound: ByTime, Retention: ShortLinkLife},
	"token_uses":          {Class: Coordinator, Bound: ByTime, Retention: tokenRetention},
	"clock_state":         {Class: Coordinator, Bound: ByInstallation},
}
