package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFunctionName_leavesOutThePackageAndClosures(t *testing.T) {
	t.Parallel()
	for long, short := range map[string]string{
		"github.com/reeltally/reeltally/store.(*Org).Video":                                       "Org.Video",
		"github.com/reeltally/reeltally/store/ingest.(*Writer).Acknowledge.func1.1":               "Writer.Acknowledge",
		"github.com/reeltally/reeltally/store/internal/db.raise":                                  "raise",
		"github.com/reeltally/reeltally/store.(*Store).SetTier.(*Store).setOrganisation.func2":    "Store.setOrganisation",
		"github.com/reeltally/reeltally/store_test.TestDelete_works.func1.(*Org).Delete.func3":    "Org.Delete",
		"github.com/reeltally/reeltally/store/internal/db.ReadEach[...].func1":                    "ReadEach",
		"github.com/reeltally/reeltally/store_test.TestDelete_works.func1.2.(*Org).Delete-range1": "Org.Delete",
	} {
		require.Equal(t, short, functionName(long), long)
	}
}

func TestStatementForm_doesNotDependOnParameters(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"SELECT a\n FROM b WHERE c = $1 AND d IN ($2,$3, $4) LIMIT 5":         "SELECT a FROM b WHERE c = ? AND d IN (?, …) LIMIT ?",
		"INSERT INTO b (a) VALUES (?, CAST(? AS text)), (?, CAST(? AS text))": "INSERT INTO b (a) VALUES (?, CAST(? AS text)), (?, CAST(? AS text))",
		"INSERT INTO b (a, c) VALUES ($1, 0), ($2, 0), ($3, 0)":               "INSERT INTO b (a, c) VALUES (?, 0), …",
		"DROP TABLE snapshots_daily_202611":                                   "DROP TABLE snapshots_daily_YYYYMM",
	} {
		require.Equal(t, want, statementForm(statement))
	}
}
