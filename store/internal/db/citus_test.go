package db_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/storetest"
)

// If a COPY inserts a row that exists already, Citus reports only the internal error XX000. The database of this test simulates that.
func TestChangeInBulk_reportsADuplicateAlthoughCitusReportsAnInternalError(t *testing.T) {
	t.Parallel()
	d := storetest.New(t, "citus")
	o := storetest.NewOrg(t, d)
	video := storetest.Track(t, o, storetest.VideoLink(t, 1))[0].ID
	load := func(tags ...string) error {
		return d.Store.DB().ChangeInBulk(t.Context(), o.ID(), func(_ *gorm.DB, insert db.InsertRows) error {
			rows := make([][]any, len(tags))
			for i, tag := range tags {
				rows[i] = []any{o.ID(), tag, video}
			}
			return insert("video_hashtags", []string{"organisation_id", "tag", "video_id"}, rows)
		})
	}
	require.NoError(t, load("cat", "dog"))
	require.ErrorIs(t, load("bird", "dog"), store.ErrDuplicate)
	require.ElementsMatch(t, []string{"cat", "dog"}, storetest.Column[string](t, d, "SELECT tag FROM video_hashtags"))
}

// The store creates, attaches and drops partitions only in a transaction that has set the sequential mode of Citus. In its parallel mode, Citus
// refuses some of these statements.
func TestInspect_refusesChangesOfTablesInParallelMode(t *testing.T) {
	t.Parallel()
	d := storetest.New(t, "citus")
	for _, change := range []string{
		"CREATE TABLE snapshots_daily_202001 PARTITION OF snapshots_daily FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')",
		"ALTER TABLE snapshots_daily ATTACH PARTITION snapshots_daily_202001 FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')",
		"DROP TABLE snapshots_daily_202001",
	} {
		require.ErrorContains(t, d.Store.DB().ReadCommitted(t.Context()).Exec(change).Error, "a statement outside of a transaction changes a table")
		require.ErrorContains(t, d.Store.DB().Tx(t.Context(), func(tx *gorm.DB) error { return tx.Exec(change).Error }), "a transaction runs CREATE, ALTER or DROP TABLE before it sets citus.multi_shard_modify_mode")
	}
	require.NoError(t, d.Store.DB().Tx(t.Context(), func(tx *gorm.DB) error {
		if err := tx.Exec("SET LOCAL citus.multi_shard_modify_mode = 'sequential'").Error; err != nil {
			return err
		}
		return tx.Exec("CREATE TABLE snapshots_daily_202001 PARTITION OF snapshots_daily FOR VALUES FROM ('2020-01-01') TO ('2020-02-01')").Error
	}))
}

func TestDistribute_distributesEveryTableAsItsClassRequires(t *testing.T) {
	t.Parallel()
	d := storetest.NewEmpty(t, "citus")
	s := d.Store
	_, err := s.Migrate(t.Context())
	require.NoError(t, err)
	require.Empty(t, storetest.Column[string](t, d, "SELECT CAST(name AS text) FROM citus_calls"), "Migrate must not distribute any table before the first call of Distribute")
	keys := `SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY 1`
	before := storetest.Column[string](t, d, keys)

	distributed, err := s.Distribute(t.Context())
	require.NoError(t, err)
	want := map[string]storetest.TableClass{}
	for name, described := range storetest.Tables {
		if described.Class != "coordinator" {
			want[name] = described.Class
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), distributed)
	got, groups := map[string]storetest.TableClass{}, []string{}
	for _, name := range storetest.Column[string](t, d, "SELECT CAST(name AS text) FROM citus_calls ORDER BY at") {
		got[name] = storetest.TableClass(storetest.Column[string](t, d, "SELECT type FROM citus_calls WHERE name = CAST(CAST(? AS text) AS regclass)", name)[0])
	}
	require.Equal(t, want, got)
	require.Equal(t, []string{"organisation_id"}, storetest.Column[string](t, d, "SELECT DISTINCT col FROM citus_calls WHERE type = 'distributed'"))
	groups = append(groups, storetest.Column[string](t, d, "SELECT DISTINCT colocate_with FROM citus_calls WHERE type = 'distributed' ORDER BY 1")...)
	require.Equal(t, []string{"accounts", "none"}, groups, "the first table must start a colocation group, and all other tables must be in this group")
	require.Equal(t, before, storetest.Column[string](t, d, keys), "every foreign key must be added again")
	require.NoError(t, s.CheckSchema(t.Context()))

	distributed, err = s.Distribute(t.Context())
	require.NoError(t, err)
	require.Empty(t, distributed)
}

func TestMigrate_distributesTheNewTablesOfADistributedDatabase(t *testing.T) {
	t.Parallel()
	d := storetest.NewEmpty(t, "citus")
	s := d.Store
	_, err := s.DB().MigrateTo(t.Context(), 22) // the tables of events and webhooks do not exist yet
	require.NoError(t, err)
	for _, name := range storetest.Column[string](t, d, `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`) {
		if class := storetest.Tables[name].Class; class == "reference" || class == "distributed" {
			d.Exec(t, "INSERT INTO citus_calls (name, type, col) VALUES (CAST(CAST(? AS text) AS regclass), ?, CASE CAST(? AS text) WHEN 'distributed' THEN 'organisation_id' END)", name, class, class)
		}
	}
	_, err = s.Migrate(t.Context())
	require.NoError(t, err)
	require.Contains(t, storetest.Column[string](t, d, "SELECT CAST(name AS text) FROM citus_calls WHERE colocate_with = 'account_days'"), "webhook_deliveries")
	require.NoError(t, s.CheckSchema(t.Context()))

	d.Exec(t, "DELETE FROM citus_calls WHERE name = 'webhooks'::regclass")
	require.ErrorContains(t, s.CheckSchema(t.Context()), "these tables are not distributed by Citus: webhooks; run `reeltally migrate`")
}

func TestDistribute_refusesTablesThatAreDistributedInAnotherWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, because string }{
		"an old version of Citus":                           {"CREATE OR REPLACE FUNCTION pg_catalog.citus_version() RETURNS text LANGUAGE sql AS $$ SELECT 'Citus 11.3.1 on x86_64' $$", "the version of Citus is 11.3.1; ReelTally needs 13 or newer"},
		"a reference table in place of a distributed table": {"UPDATE citus_calls SET type = 'reference' WHERE name = 'videos'::regclass", "the table videos is a reference table of Citus, but must be a distributed table"},
		"a reference table in place of a coordinator table": {"INSERT INTO citus_calls (name, type) VALUES ('fetch_targets', 'reference')", "the table fetch_targets is a reference table of Citus, but must be a coordinator table"},
		"a table distributed by another column":             {"UPDATE citus_calls SET col = 'id' WHERE name = 'videos'::regclass", "the table videos is distributed by id"},
		"a unique key without organisation_id":              {"DELETE FROM citus_calls WHERE name = 'reports'::regclass; CREATE UNIQUE INDEX wrong ON reports (id)", "a unique key lacks organisation_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := storetest.New(t, "citus")
			d.Exec(t, c.change)
			_, err := d.Distribute(t.Context())
			require.ErrorContains(t, err, c.because)
		})
	}
}

func TestDistribute_returnsErrNoCitusWithoutTheExtension(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		d := storetest.New(t, engine)
		_, err := d.Distribute(t.Context())
		require.ErrorIs(t, err, db.ErrNoCitus, fmt.Sprint(engine))
		require.ErrorContains(t, err, map[string]string{"sqlite": "this database is SQLite", "postgres": "run CREATE EXTENSION citus"}[engine])
	}
}
