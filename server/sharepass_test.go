package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// TestSharePage_asksForThePasswordAgainAfterThePageWasClosed closes protected share pages and opens them again with the same password. Then a visitor who
// gave the password before must give it again.
func TestSharePage_asksForThePasswordAgainAfterThePageWasClosed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		report := c.createReport(collection)
		target := "/collections/" + collection.String()
		protect := map[string]any{"access": "protected", "password": sharePassword}
		paths := map[string]string{target: c.shareCollection(collection, "protected", protect), "/reports/" + report.String(): c.shareReport(collection, report, protect)}
		for target, path := range paths {
			change := func(members map[string]any) {
				t.Helper()
				c.send(http.MethodPatch, target, members).requireStatus(http.StatusNoContent)
			}
			visitor := &visitor{app: a, t: t}
			isOpen := func() bool {
				t.Helper()
				return len(numbersIn(visitor.visit(path).requireStatus(http.StatusOK).parsePage())) > 0
			}
			giveNewPass := func() {
				t.Helper()
				visitor.post(path, "password", sharePassword).requireStatus(http.StatusSeeOther)
				require.True(t, isOpen(), path)
			}
			giveNewPass()
			change(map[string]any{"access": "protected", "share_expires_at": a.Clock.Now().Add(time.Hour).Format(server.TimeLayout)})
			require.True(t, isOpen(), "a change that does not close the page must keep the pass")

			change(map[string]any{"access": "private"})
			visitor.visit(path).requireStatus(http.StatusNotFound)
			change(map[string]any{"access": "protected"})
			require.False(t, isOpen(), path)
			giveNewPass()

			change(map[string]any{"access": "private"})
			change(map[string]any{"access": "public"})
			change(map[string]any{"access": "protected"})
			require.False(t, isOpen(), path)
			giveNewPass()

			a.Clock.Advance(time.Hour)
			visitor.visit(path).requireStatus(http.StatusNotFound)
			change(map[string]any{"share_expires_at": nil})
			require.False(t, isOpen(), "a page that had ended must ask for the password after it is opened again: %s", path)
			giveNewPass()
		}
	})
}
