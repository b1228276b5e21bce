package db

import (
	"time"
)

// TableClass says how Citus stores a table on several PostgreSQL nodes: see Distribute. Some classes have rules
// for keys and statements. These rules also hold on databases without Citus.
type TableClass string

// The values of TableClass.
const (
	// Reference is the class of small, rarely written tables. With Citus, every node has a copy of them.
	Reference TableClass = "reference"
	// Distributed is the class of tables with data of organisations. Citus divides the rows by
	// organisation_id. Every key must begin with organisation_id, and every WHERE and JOIN must
	// compare it.
	Distributed TableClass = "distributed"
	// Coordinator is the class of tables that belong to no organisation and to which no other table refers. With Citus, they are on the
	// coordinator only.
	Coordinator TableClass = "coordinator"
)

// TableBound says what limits the number of rows of a table.
type TableBound string

// The values of TableBound.
const (
	// ByInstallation means that the number of rows depends on what operators create and configure.
	ByInstallation TableBound = "installation"
	// ByTenantData means that the number of rows is proportional to the videos, accounts and collections of organisations. The rate limits of the API
	// restrict how fast this number grows.
	ByTenantData TableBound = "tenant data"
	// ByTime means that rows are added as time passes. Rows that are older than Table.Retention are deleted.
	ByTime TableBound = "time"
)

// Table says how a table of the schema is stored on Citus, and what limits its size.
type Table struct {
	Class TableClass
	Bound TableBound
	// Retention is how long a row is kept after its creation, last use or end, such as the expiry of a token. Later, a clean-up deletes the row.
	// Retention is set only if Bound is ByTime.
	Retention time.Duration
}

const (
	// DailyDays is the default of Retention.Daily.
	DailyDays = 90
	// WeeklyDays is the default of Retention.Weekly.
	WeeklyDays = 730
	// RetentionMargin is added to Retention.Weekly, in days. For the oldest day that a caller can
	// request, the needed weekly point can be up to 13 days older.
	RetentionMargin = 14
	// IdempotencyLife is how long an idempotency key and its response are kept.
	IdempotencyLife = 24 * time.Hour
	// EventRetention is how long an event and its deliveries are kept.
	EventRetention = 7 * Day
	// ShortLinkLife is how long a short link and the link to which it redirects are stored.
	ShortLinkLife = 30 * Day
)

const (
	// Day is 24 hours.
	Day = 24 * time.Hour

	// dailyRetention is how long a daily point can stay with the default Retention. A point can stay longer than DailyDays: up to a month, because only whole
	// months are dropped, and up to a week more, because only whole weeks are rolled up.
	dailyRetention  = (DailyDays + 31 + 7) * Day
	weeklyRetention = (WeeklyDays + RetentionMargin + 1) * Day
	// tokenRetention is how long an expired or revoked token is kept, so that operators still see it in lists.
	tokenRetention = 90 * Day
	// sessionRetention is how long an expired session or login link is kept.
	sessionRetention = Day
	// quotaRetention is how long the count of a quota window is kept after its last change. It is longer than any quota window.
	quotaRetention = 100 * Day
	// leftoverRetention is how long rows without further use are kept, such as a source's pause that has ended.
	leftoverRetention = 30 * Day
	// collectorRetention is how long the row of a killed collector is kept after its last heartbeat, in addition to the time of its longest fetch.
	collectorRetention = 10 * time.Minute
)

// Tables describes each table of the schema. The key is the table's name. A test fails if a table is missing here, or if the field Bound is not set.
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
	"reports":              {Class: Distributed, Bound: ByTenantData},
	"event_feeds":          {Class: Distributed, Bound: ByTenantData},
	"events":               {Class: Distributed, Bound: ByTime, Retention: EventRetention},
	"video_milestones":     {Class: Distributed, Bound: ByTenantData},
	"webhooks":             {Class: Distributed, Bound: ByTenantData},
	"webhook_deliveries":   {Class: Distributed, Bound: ByTime, Retention: EventRetention},

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
	"short_links":         {Class: Coordinator, Bound: ByTime, Retention: ShortLinkLife},
	"token_uses":          {Class: Coordinator, Bound: ByTime, Retention: tokenRetention},
	"sessions":            {Class: Coordinator, Bound: ByTime, Retention: sessionRetention},
	"login_links":         {Class: Coordinator, Bound: ByTime, Retention: sessionRetention},
	"share_pages":         {Class: Coordinator, Bound: ByTenantData},
	"thumbnails":          {Class: Coordinator, Bound: ByTenantData},
	"webhook_queue":       {Class: Coordinator, Bound: ByTenantData},
	"clock_state":         {Class: Coordinator, Bound: ByInstallation},
}
