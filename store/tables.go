package store

import "time"

// TableClass says how a table would be laid out on a sharded PostgreSQL, and thereby which rules its keys and
// statements follow on every engine.
type TableClass string

// The classes.
const (
	// Reference tables are copied to every node: small, rarely written.
	Reference TableClass = "reference"
	// Distributed tables are sharded by organisation_id: it begins every key and stands in every WHERE and JOIN.
	Distributed TableClass = "distributed"
	// Coordinator tables belong to no organisation and are referred to by no other table.
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
	day = 24 * time.Hour

	// dailyRetention includes up to a month, because PostgreSQL drops whole months, and up to a week, because weeks are rolled up whole.
	dailyRetention  = (DailyDays + 31 + 7) * day
	weeklyRetention = (WeeklyDays + retentionMargin + 1) * day
	// tokenRetention is how long an expired or revoked token is still listed for operators.
	tokenRetention = 90 * day
	// quotaRetention is how long a window's count is kept after its last change. It is longer than any window.
	quotaRetention = 100 * day
	// leftoverRetention is how long rows are kept that are no longer referred to, such as a pause that has ended.
	leftoverRetention = 30 * day
	// collectorRetention is how long a collector that stopped without notice stays in the list: see Heartbeat.
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
	"idempotency_keys":     {Class: Distributed, Bound: ByTime, Retention: idempotencyLife},
	"idempotency_usage":    {Class: Distributed, Bound: ByTenantData},

	"fetch_targets":       {Class: Coordinator, Bound: ByTenantData},
	"fetch_subscriptions": {Class: Coordinator, Bound: ByTenantData},
	"fetch_routes":        {Class: Coordinator, Bound: ByInstallation},
	"org_turns":           {Class: Coordinator, Bound: ByTime, Retention: leftoverRetention},
	"jobs":                {Class: Coordinator, Bound: ByInstallation},
	"quota_windows":       {Class: Coordinator, Bound: ByTime, Retention: quotaRetention},
	"source_pauses":       {Class: Coordinator, Bound: ByTime, Retention: leftoverRetention},
	"source_refusals":     {Class: Coordinator, Bound: ByInstallation},
	"source_tokens":       {Class: Coordinator, Bound: ByInstallation},
	"collectors":          {Class: Coordinator, Bound: ByTime, Retention: collectorRetention},
	"short_links":         {Class: Coordinator, Bound: ByTime, Retention: shortLinkLife},
	"token_uses":          {Class: Coordinator, Bound: ByTime, Retention: tokenRetention},
	"clock_state":         {Class: Coordinator, Bound: ByInstallation},
}
