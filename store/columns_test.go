package store

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm/schema"

	"github.com/reeltally/reeltally/store/internal/db"
)

func TestListColumns_includeEveryFieldOfTheRow(t *testing.T) {
	t.Parallel()
	requireColumns(t, videoColumns, "counted_since", "first_views", "title_folded")
	requireColumns(t, accountColumns, "listed_depth")                    // only TrackAccounts and the merging of accounts read this column
	requireColumns(t, collectionColumns, "video_count", "account_count") // lists of collections have no counts
	requireColumns(t, reportColumns)
	requireColumns(t, deliveryColumns, "organisation_id", "position") // the API does not show these columns
}

// requireColumns fails the test if the columns are not those of all fields that GORM stores for an R. The columns in "except" must be missing.
func requireColumns[R any](t *testing.T, columns []db.Column[R], except ...string) {
	t.Helper()
	fields, err := schema.Parse(new(R), &sync.Map{}, schema.NamingStrategy{})
	require.NoError(t, err)
	require.Subset(t, fields.DBNames, except)
	names := slices.Clone(except)
	for _, c := range columns {
		names = append(names, c.Name)
	}
	require.ElementsMatch(t, fields.DBNames, names, fields.Name)
}
