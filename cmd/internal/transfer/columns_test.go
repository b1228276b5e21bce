package transfer

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Requirements in docs/coverage.md: 11.12-06
func TestColumns_refusesTheOldViewCountOfInstagramUnlessItIsMapped(t *testing.T) {
	t.Parallel()
	_, err := Columns{}.fieldsOfHeader([]string{"link", "video_view_count"})
	require.ErrorContains(t, err, `column "video_view_count" is not known`)
	fields, err := Columns{}.fieldsOfHeader([]string{"link", "video_play_count"})
	require.NoError(t, err)
	require.Equal(t, []field{fieldLink, fieldViews}, fields)
	fields, err = Columns{Map: map[string]string{"video_view_count": "views"}}.fieldsOfHeader([]string{"link", "video_view_count"})
	require.NoError(t, err)
	require.Equal(t, []field{fieldLink, fieldViews}, fields)
}

// Requirements in docs/coverage.md: 11.9-01
func TestColumns_reportAllUnknownNamesInOneError(t *testing.T) {
	t.Parallel()
	_, err := Columns{}.fieldsOfHeader([]string{"link", "mood", "views", "score"})
	require.ErrorContains(t, err, `columns "mood", "score" are not known`)
	r, err := newRowReader(strings.NewReader(`[{"link":"a","mood":1},{"link":"b","score":2,"mood":3}]`), Columns{})
	require.NoError(t, err)
	for range 2 {
		_, _, err = r.next()
		require.NoError(t, err)
	}
	_, _, err = r.next()
	require.ErrorContains(t, err, `columns "mood", "score" are not known`)
	require.ErrorAs(t, err, new(fileError))

	var many []string
	for n := range maxUnknownNames + 1 {
		many = append(many, strings.Repeat("x", n+1))
	}
	_, err = Columns{}.fieldsOfHeader(many)
	require.ErrorContains(t, err, "more than 100 columns are not known")
	require.ErrorContains(t, err, "give the meaning of each column with --map")
}

// Requirements in docs/coverage.md: 11.9-02
func TestColumns_knowColumnNamesOfHostedServices(t *testing.T) {
	t.Parallel()
	// These are the names of all fields of a video in the API of hosted services.
	names := strings.Fields("organisation_id ad_id username platform ad_link created_at removed linked_account_id uploaded_at song_name song_link video_length " +
		"title not_safe private hidden_stats latest_views latest_likes latest_comments latest_bookmarks latest_shares latest_engagement latest_updated_at " +
		"outlier_multiplier increase_1d increase_7d increase_14d increase_30d ad_info_shop ad_is_ad ad_product_id_shop label_ids label_names")
	fields, err := Columns{}.fieldsOfHeader(names)
	require.NoError(t, err)
	for name, want := range map[string]field{"ad_link": fieldLink, "latest_views": fieldViews, "latest_likes": fieldLikes, "latest_comments": fieldComments,
		"latest_bookmarks": fieldBookmarks, "latest_shares": fieldShares, "latest_updated_at": fieldTime, "created_at": fieldIgnored, "removed": fieldRemoved} {
		require.Equal(t, want, fields[slices.Index(names, name)], name)
	}
	_, err = Columns{}.fieldsOfHeader([]string{"link", "created_at"})
	require.ErrorContains(t, err, `column "created_at" is not known`, "the column created_at has two possible meanings, so it must be refused in a file without the column ad_link")
}

// docs/import.md lists every field with all its aliases.
func TestColumns_allNamesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "import.md"))
	require.NoError(t, err)
	documented := map[field][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z0-9_, ]*)\\|").FindAllStringSubmatch(string(text), -1) {
		f, ok := byAlias[simplifyColumnName(row[1])]
		require.True(t, ok, row[1])
		names := []string{simplifyColumnName(row[1])}
		for name := range strings.SplitSeq(row[2], ",") {
			if name = simplifyColumnName(name); name != "" {
				names = append(names, name)
			}
		}
		documented[f] = names
	}
	for f, names := range aliases {
		if f != fieldIgnored {
			require.ElementsMatch(t, names, documented[f], fieldNames[f])
		}
	}
}
