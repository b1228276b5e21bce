package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/storetest"
)

// On Citus, a COPY of a row that exists already fails with the internal error XX000. A trigger imitates this here.
func TestChangeInBulk_reportsADuplicateAlthoughCitusReportsAnInternalError(t *testing.T) {
	t.Parallel()
	d := storetest.New(t, "citus")
	o := storetest.NewOrg(t, d)
	video := storetest.Track(t, o, storetest.Clip(t, 1))[0].VideoID
	d.Exec(t, `CREATE FUNCTION fail_copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF current_query() ILIKE 'copy%' THEN RAISE EXCEPTION 'failed' USING ERRCODE = 'XX000'; END IF;
 RETURN NEW;
END $$`)
	d.Exec(t, "CREATE TRIGGER fail_copy BEFORE INSERT ON video_hashtags FOR EACH ROW EXECUTE FUNCTION fail_copy()")
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
