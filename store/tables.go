package store

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

// TableClasses classifies every table. A table that is missing here fails the catalog test.
var TableClasses = map[string]TableClass{
	"organisations": Reference,
	"api_tokens":    Reference,
	"settings":      Reference,

	"accounts":            Distributed,
	"videos":              Distributed,
	"video_hashtags":      Distributed,
	"snapshots_daily":     Distributed,
	"snapshots_weekly":    Distributed,
	"collections":         Distributed,
	"collection_hashtags": Distributed,
	"collection_videos":   Distributed,
	"collection_accounts": Distributed,
	"organisation_totals": Distributed,
	"organisation_days":   Distributed,

	"organisation_uploads": Distributed,
	"account_days":         Distributed,
	"idempotency_keys":     Distributed,

	"fetch_targets":       Coordinator,
	"fetch_subscriptions": Coordinator,
	"org_turns":           Coordinator,
	"jobs":                Coordinator,
	"quota_windows":       Coordinator,
	"source_pauses":       Coordinator,
	"source_refusals":     Coordinator,
	"source_tokens":       Coordinator,
	"collectors":          Coordinator,
	"short_links":         Coordinator,
	"token_uses":          Coordinator,
}
