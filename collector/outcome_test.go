package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

func TestOutcome_takesTheAuthorOnlyFromAnAnswerWithDetails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	text := func(s string) *string { return &s }
	views := int64(7)
	facts := Facts{Views: &views, Title: text("A title"), Username: text("somebody"), AccountID: text("42"), AccountName: text("Somebody")}
	claimed := store.Target{Platform: link.TikTok, Kind: string(KindVideo), ExternalID: "7106594312292453675"}

	of := func(details bool) store.Outcome {
		given := facts
		return outcome(claimed, Result{Target: Target{NeedDetails: details}, Class: OK, Facts: &given}, "vendor", 0, now)
	}
	full := of(true)
	require.Equal(t, &facts, full.Facts)
	require.True(t, full.Details)

	counts := of(false)
	require.Equal(t, &Facts{Views: &views, Title: text("A title")}, counts.Facts, "everything but who the author is")
	require.False(t, counts.Details, "the next turn of the details must not be put off")
}
