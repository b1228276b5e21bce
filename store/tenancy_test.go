package store_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// references has ids, links and names that a test passes to the methods of Org. They belong to the calling organisation, to another
// organisation, or to no organisation.
type references struct {
	video, account, collection, report, token uuid.UUID
	webhook, delivery                         uuid.UUID
	videoLink, accountLink                    link.Link
	name, key                                 string
	today                                     store.Date
}

// answer has all results of a method, including the text of its error.
type answer struct {
	Values []any
	Err    string
}

func newAnswer(err error, values ...any) answer {
	a := answer{Values: values}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// newTenant adds a video, an account, a collection, a report, a token, a webhook, a delivery and an idempotency key to an organisation. It
// returns their ids, links and names.
func newTenant(t *testing.T, db *storetest.DB, o *store.Org, handle string, n int) references {
	t.Helper()
	x := unknownRefs(t, db, handle, n)
	tracked, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{x.videoLink}, CollectionNames: []string{x.name}})
	require.NoError(t, err)
	accounts, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: []link.Link{x.accountLink}, Type: store.TrackAll, CollectionNames: []string{x.name}})
	require.NoError(t, err)
	x.video, x.account = tracked[0].ID, accounts[0].ID
	x.collection = storetest.VideoOf(t, o, x.videoLink).Labels[0].ID
	storetest.Collection(t, o, "child", &x.collection)
	made, err := o.CreateReport(t.Context(), newReport(x))
	require.NoError(t, err)
	x.report = made.ID
	token, _, err := o.CreateToken(t.Context(), newReadToken(x.name))
	require.NoError(t, err)
	x.token = token.ID
	webhook, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
	require.NoError(t, err)
	delivery, err := o.TestWebhook(t.Context(), webhook.ID, uuid.Nil)
	require.NoError(t, err)
	x.webhook, x.delivery = webhook.ID, delivery.ID
	reserveKey(t, o, "TrackVideo", x.key, "g")
	return x
}

// unknownRefs returns ids, links and names that no organisation has.
func unknownRefs(t *testing.T, db *storetest.DB, handle string, n int) references {
	t.Helper()
	l := storetest.VideoLink(t, n)
	return references{video: store.NewID(), account: store.NewID(), collection: store.NewID(), report: store.NewID(), token: store.NewID(), webhook: store.NewID(), delivery: store.NewID(), name: handle, key: handle, today: storetest.Today(db),
		videoLink: storetest.ParseLink(t, strings.Replace(l.Canonical, "someone", handle, 1)), accountLink: storetest.ParseLink(t, "https://www.tiktok.com/@"+handle)}
}

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// replaceIDs returns an answer as text, with a placeholder for each id and for the references in x.
// So a test can compare the answers for two organisations.
func replaceIDs(t *testing.T, a answer, x references) string {
	t.Helper()
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	text := strings.NewReplacer(x.video.String(), "VIDEO", x.account.String(), "ACCOUNT", x.collection.String(), "COLLECTION", x.report.String(), "REPORT", x.token.String(), "TOKEN", x.webhook.String(), "WEBHOOK", x.delivery.String(), "DELIVERY",
		x.videoLink.ID, "VIDEO LINK", x.name, "NAME").Replace(string(raw))
	seen := map[string]string{}
	return anyUUID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = "ID" + string(rune('A'+len(seen)))
		}
		return seen[id]
	})
}

// methodsWithoutIDs lists the methods of Org whose arguments cannot name a record of another organisation.
var methodsWithoutIDs = []string{"ID", "VideoStatistics", "AccountStatistics", "OrganisationHistory", "Export", "ListPoints", "Seed", "Version", "AtVersion", "OnVersion", "Tokens", "CreateToken",
	"CreateWebhook", "Webhooks", "OpenFeed", "ListEvents", "PauseUnusedFeed", "DeleteExpiredEvents", "LastShareVisit", "CollectionSums"}

// readOnlyMethods are the names of the methods of Org that only read the database.
var readOnlyMethods = []string{"ID", "Video", "TrackedVideoIDs", "History", "VideoStatistics", "Account", "AccountHistory", "AccountGains",
	"TrackedAccountIDs", "AccountStatistics", "OrganisationHistory", "Export", "Collection", "Version", "AtVersion", "OnVersion",
	"ListVideos", "ListAccounts", "ListAccountVideos", "ListCollections", "CollectionTotals", "Report", "ReportDocument", "ReadReport", "ListReports", "ListPoints", "Tokens",
	"Webhooks", "Webhook", "WebhookPauseEnd", "ListDeliveries", "ListEvents", "LastShareVisit", "CollectionSums"}

func TestLastShareVisit_isNilForAnotherOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		shared, err := o.UpdateCollection(t.Context(), storetest.Collection(t, o, "launch", nil).ID, store.CollectionPatch{SharingPatch: store.SharingPatch{Access: new(store.AccessPublic)}})
		require.NoError(t, err)
		share, err := db.Share(t.Context(), store.ShareCollection, *shared.Hash)
		require.NoError(t, err)
		require.NoError(t, db.SaveShareVisit(t.Context(), share))
		own, err := o.LastShareVisit(t.Context(), *shared.Hash)
		require.NoError(t, err)
		require.Equal(t, store.InstantOf(db.Clock.Now()), *own)
		foreign, err := storetest.NewOrg(t, db).LastShareVisit(t.Context(), *shared.Hash)
		require.NoError(t, err)
		require.Nil(t, foreign)
	})
}

func TestOrg_treatsRecordsOfOtherOrganisationsAsUnknown(t *testing.T) {
	t.Parallel()
	methods := reflect.TypeFor[*store.Org]()
	names := []string{"Import", "Seed"} // functions of package backfill that take an Org
	for method := range methods.Methods() {
		names = append(names, method.Name)
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(tenantCalls)), "tenantCalls must have calls of each exported method of Org")

	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.CreateOrgWithData(t, db) // CreateOrgWithData also runs the SQL statements of collectors; the last subtest checks these statements
		other := storetest.NewOrg(t, db)
		foreign := newTenant(t, db, other, "foreign", 5)
		// The ids of the callers are created last. So in a list that is sorted by id, foreign and
		// unknown ids come before the caller's ids.
		unknown, n := unknownRefs(t, db, "phantom", 2), 10
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{foreign.videoLink: {Views: new(int64(5)), Title: new("foreign #foreign")}})
		otherRows := storetest.StoredRows(t, db, other)

		// Three organisations have equal records. The first calls methods with ids of another organisation, the second with unknown ids,
		// and the third with its own ids.
		type caller struct {
			org  *store.Org
			mine references
		}
		newCallers := func() (a [3]caller) {
			n += 10
			titles := map[link.Link]ingest.VideoFacts{}
			for i := range a {
				a[i].org = storetest.NewOrg(t, db)
				a[i].mine = newTenant(t, db, a[i].org, "mine", n)
				titles[a[i].mine.videoLink] = ingest.VideoFacts{Title: new("mine #mine")}
			}
			storetest.Measure(t, db, db.Clock.Now(), titles)
			db.Clock.Advance(time.Second) // the clock is advanced, so that a method that stores the current time changes the stored value
			return a
		}
		readers := newCallers()
		for _, name := range names {
			for i, call := range tenantCalls[name] {
				a, reads := readers, slices.Contains(readOnlyMethods, name)
				var before map[string][]string
				if !reads {
					a = newCallers()
					before = storetest.StoredRows(t, db, a[2].org)
				}
				unknown.videoLink = unknownRefs(t, db, "phantom", n+1).videoLink
				want := replaceIDs(t, call(t.Context(), a[1].org, unknown, a[1].mine), unknown)
				require.Equal(t, want, replaceIDs(t, call(t.Context(), a[0].org, foreign, a[0].mine), foreign), "%s, call %d", name, i)
				own := replaceIDs(t, call(t.Context(), a[2].org, a[2].mine, a[2].mine), a[2].mine)
				if !reads {
					require.Equal(t, otherRows, storetest.StoredRows(t, db, other), "%s, call %d: rows of another organisation must not change", name, i)
				}
				if !slices.Contains(methodsWithoutIDs, name) && own == want {
					require.NotEqual(t, before, storetest.StoredRows(t, db, a[2].org), "%s, call %d: a call with known ids must change rows, or have another answer than a call with unknown ids", name, i)
				}
			}
		}
		require.Equal(t, otherRows, storetest.StoredRows(t, db, other))
		t.Run("statements without a condition on the organisation", func(t *testing.T) {
			statements, mutants := db.Guard.Statements(), 0
			slices.Sort(statements)
			statements = slices.Compact(statements)
			for _, s := range statements {
				require.NoError(t, storetest.CheckStatement(s))
				for _, m := range storetest.Mutants(s) {
					if m.Shared {
						continue
					}
					mutants++
					require.Error(t, storetest.CheckStatement(m.Text), "the guard must refuse a statement that lacks a %s: %s", m.Removed, m.Text)
				}
			}
			require.Greater(t, mutants, len(statements)/2, "the number of mutants must be more than half the number of statements")
		})
	})
}
