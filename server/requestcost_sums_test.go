package server_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/storetest"
)

// databaseCPU returns the CPU time that the PostgreSQL connections to the test's database have used. It is 0 on SQLite, which runs in the process of the
// test.
func (a *app) databaseCPU() time.Duration {
	a.t.Helper()
	if a.Engine == "sqlite" {
		return 0
	}
	var sum time.Duration
	for _, pid := range storetest.Column[int64](a.t, a.DB, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)) // the first number in this file is the CPU time in nanoseconds
		require.NoError(a.t, err, "PostgreSQL must run on the machine of the test")
		var used time.Duration
		_, err = fmt.Sscan(string(content), &used)
		require.NoError(a.t, err)
		sum += used
	}
	return sum
}

// seedHistories adds 5,000 videos to a collection. Each video has a point for each of the last 98 days, and a point for each week before. No point is
// older than the given number of days.
func (c *caller) seedHistories(collection uuid.UUID, oldest int) {
	c.t.Helper()
	now := c.app.Clock.Now()
	for first := 0; first < store.MaxTotalsVideos; first += 500 {
		account := backfill.SeedAccount{Account: store.Account{ID: store.NewID(), Platform: "tiktok", Username: fmt.Sprintf("author%d", first),
			Link: fmt.Sprintf("https://www.tiktok.com/@author%d", first), CreatedAt: store.InstantOf(now.AddDate(-3, 0, 0))}}
		for n := first; n < first+500; n++ {
			l := storetest.VideoLink(c.t, n)
			v := backfill.SeedVideo{Collections: []uuid.UUID{collection}, Video: store.Video{ID: store.NewID(), Platform: l.Platform, ExternalID: l.ID, Link: l.Canonical,
				Direct: true, Username: account.Username, CreatedAt: account.CreatedAt, Title: "Five things to do on a rainy day #diy"}}
			for age := oldest; age >= 0; age-- {
				if age > 98 && age%7 != 0 {
					continue
				}
				p := backfill.Point{At: store.InstantOf(now.AddDate(0, 0, -age))}
				for m, count := range p.Fields() {
					*count = new(int64(1_000_000 - 1_000*age + 10*n + m))
				}
				v.Points = append(v.Points, p)
			}
			account.Videos = append(account.Videos, v)
		}
		require.NoError(c.t, backfill.Seed(c.t.Context(), c.app.Org(c.org.ID), backfill.SeedBatch{Accounts: []backfill.SeedAccount{account}, Source: "test"}))
	}
}

// forgetCounts removes four counts from the newest points, as if sources had stopped reporting them: the likes 36 days ago, the comments 200 days ago,
// the shares 400 days ago, and the bookmarks 700 days ago.
func (a *app) forgetCounts() {
	a.t.Helper()
	for _, table := range []string{"snapshots_daily", "snapshots_weekly"} {
		var changes []string
		for column, days := range map[string]int{"likes": 36, "comments": 200, "shares": 400, "bookmarks": 700} {
			changes = append(changes, fmt.Sprintf("%[1]s = CASE WHEN day > '%[2]s' THEN NULL ELSE %[1]s END", column, a.daysAgo(days)))
		}
		a.Exec(a.t, "UPDATE "+table+" SET "+strings.Join(changes, ", "))
	}
}

// TestRequestCost_sumsOfLargeCollectionsUseLittleTime reads the sums of 5,000 videos: of one day, of the longest allowed period, and of the
// longest period for which the page of a collection also has the gain of the previous period.
//
//nolint:paralleltest // the test measures the time and memory of the whole process
func TestRequestCost_sumsOfLargeCollectionsUseLittleTime(t *testing.T) {
	storetest.SkipIfShort(t)
	const longest = store.MaxTotalsVideoDays / store.MaxTotalsVideos
	for _, engine := range storetest.StoreEngines() {
		t.Run(engine, func(t *testing.T) {
			a := newApp(t, storetest.New(t, engine))
			c := a.newCaller(t, store.TierPremium)
			id := c.createNamedCollection("Launch")
			c.seedHistories(id, 728)
			v := c.newSignedInVisitor(t)
			statistics := func(days int) response {
				return c.send(http.MethodGet, fmt.Sprintf("/collections/%s/statistics?start_date=%s", id, a.daysAgo(days-1)), nil)
			}
			page := func(days int) response {
				return v.visit(fmt.Sprintf("/collection/%s?start=%s&end=%s", id, a.daysAgo(days-1), a.daysAgo(0)))
			}
			measure := func(name string, maxCPU time.Duration, get func(days int) response, days int) {
				a.Exec(t, "UPDATE organisation_totals SET version = version + 1") // so that no sums are in memory
				before, databaseBefore := measureCost(t), a.databaseCPU()
				got := get(days).requireStatus(http.StatusOK)
				inDatabase := a.databaseCPU() - databaseBefore
				after := measureCost(t)
				used, allocated := after.cpu-before.cpu+inDatabase, after.bytes-before.bytes
				name = fmt.Sprintf("%s, %d days", name, days)
				t.Logf("%s: %v of processor time, of which %v in PostgreSQL, %.1f MiB allocated", name, used, inDatabase, float64(allocated)/(1<<20))
				require.Regexp(t, `"videos":5000|5,?000 videos`, string(got.body), name)
				require.Less(t, used, maxCPU, name) // docs/evidence/reads.md says where the limit of one second is missed
				require.Less(t, allocated, uint64(maxRequestBytes), name)
			}
			for _, state := range []string{"all counts known", "four counts unknown for months"} {
				maxCPU := 2 * maxRequestCPU
				if state != "all counts known" {
					a.forgetCounts()
					maxCPU = 4 * maxRequestCPU
				}
				if engine != "sqlite" {
					a.Exec(t, "VACUUM ANALYZE") // as autovacuum does
				}
				page(1) // open a connection and parse the templates before the measurement
				measure("statistics, "+state, maxCPU, statistics, 1)
				measure("statistics, "+state, maxCPU, statistics, longest)
				measure("page, "+state, maxCPU, page, longest/2)
				measure("page, "+state, maxCPU, page, longest)
			}
		})
	}
}
