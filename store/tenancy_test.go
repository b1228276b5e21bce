package store_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// things are the ids, links and names in the arguments of a call. They belong to the calling organisation, belong to another organisation,
// or are unknown.
type things struct {
	video, account, collection, report, token uuid.UUID
	webhook, delivery                         uuid.UUID
	clip, profile                             link.Link
	name, key                                 string
	today                                     store.Date
}

// answer has all results of a method, including the text of its error.
type answer struct {
	Values []any
	Err    string
}

// answered returns an answer with the given values and the text of err.
func answered(err error, values ...any) answer {
	a := answer{Values: values}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// tenantCalls has calls of every method of Org, by the name of the method. A call passes the things x to the method, which may belong to
// another organisation. mine are the things of the calling organisation.
var tenantCalls = map[string][]func(ctx context.Context, o *store.Org, x, mine things) answer{
	"ID": {func(_ context.Context, o *store.Org, _, _ things) answer { return answered(nil, o.ID()) }},
	"Video": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			v, err := o.Video(ctx, store.VideoRef{ID: x.video})
			return answered(err, v)
		},
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			v, err := o.Video(ctx, store.VideoRef{Link: x.clip})
			return answered(err, v)
		},
	},
	"Videos": {
		videosBy(func(q *store.VideoQuery, x things) { q.LinkedAccountID = &x.account }),
		videosBy(func(q *store.VideoQuery, x things) { q.CollectionID = &x.collection }),
		videosBy(func(q *store.VideoQuery, x things) { q.Collections = []string{x.name} }),
		videosBy(func(q *store.VideoQuery, x things) { q.Collections = []string{x.collection.String()} }),
		videosBy(func(q *store.VideoQuery, x things) { q.Link = &x.clip }),
		videosBy(func(q *store.VideoQuery, x things) { q.Username = &x.profile.Handle }),
		videosBy(func(q *store.VideoQuery, x things) { q.Hashtag = &x.name }),
		videosBy(func(q *store.VideoQuery, x things) { q.Words = &x.name }),
		videosBy(func(q *store.VideoQuery, x things) {
			q.Order.Descending, q.Window.After = false, &store.Position{Null: true, ID: x.video}
		}),
	},
	"TrackedVideoIDs": {func(ctx context.Context, o *store.Org, x, mine things) answer {
		ids, err := o.TrackedVideoIDs(ctx, []link.Link{x.clip, mine.clip})
		return answered(err, ids)
	}},
	"History": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			points, err := o.History(ctx, store.VideoRef{ID: x.video}, x.today-30, x.today)
			return answered(err, points)
		},
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			points, err := o.History(ctx, store.VideoRef{Link: x.clip}, x.today-700, x.today)
			return answered(err, points)
		},
	},
	"Track": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			tracked, err := o.Track(ctx, store.TrackRequest{Links: []link.Link{x.clip}, CollectionNames: []string{x.name}, Immediate: 1, Enqueue: 1})
			return answered(err, tracked)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			tracked, err := o.Track(ctx, store.TrackRequest{Links: []link.Link{mine.clip}, CollectionIDs: []uuid.UUID{x.collection}})
			return answered(err, tracked)
		},
	},
	"StopVideos": {
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			unmatched, err := o.StopVideos(ctx, []store.VideoRef{{ID: x.video}, {Link: x.clip}, {ID: mine.video}}, false)
			return answered(err, unmatched)
		},
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			unmatched, err := o.StopVideos(ctx, []store.VideoRef{{ID: x.video}, {Link: x.clip}}, true)
			return answered(err, unmatched)
		},
	},
	"RefreshVideo": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		r, err := o.RefreshVideo(ctx, store.VideoRef{ID: x.video})
		_, byLink := o.RefreshVideo(ctx, store.VideoRef{Link: x.clip})
		return answered(err, r, answered(byLink))
	}},
	"VideoStatistics": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		s, err := o.VideoStatistics(ctx)
		return answered(err, s)
	}},
	"Account": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			a, err := o.Account(ctx, store.AccountRef{ID: x.account})
			return answered(err, a)
		},
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			a, err := o.Account(ctx, store.AccountRef{Link: x.profile})
			return answered(err, a)
		},
	},
	"Accounts": {
		accountsBy(func(q *store.AccountQuery, x things) { q.CollectionID = &x.collection }),
		accountsBy(func(q *store.AccountQuery, x things) { q.Collections = []string{x.name, x.collection.String()} }),
		accountsBy(func(q *store.AccountQuery, x things) { q.Username = &x.profile.Handle }),
		accountsBy(func(q *store.AccountQuery, x things) {
			q.Order.Descending, q.Window.After = false, &store.Position{Null: true, ID: x.account}
		}),
	},
	"AccountVideos": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		page, err := o.AccountVideos(ctx, store.AccountRef{ID: x.account}, storetest.OrderedBy("created_at", true))
		return answered(err, page)
	}},
	"Version": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		version, err := o.Version(ctx)
		return answered(err, version)
	}},
	"At": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		version, err := o.Version(ctx)
		if err != nil {
			return answered(err, nil)
		}
		list, err := o.At(version).ListVideos(ctx, storetest.OrderedBy("created_at", true))
		return rowsOf(list, err)
	}},
	"ListAccountVideos": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		list, err := o.ListAccountVideos(ctx, store.AccountRef{ID: x.account}, storetest.OrderedBy("created_at", true))
		return rowsOf(list, err)
	}},
	"ListVideos": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		q := storetest.OrderedBy("created_at", true)
		q.Collections = []string{x.name, x.collection.String()}
		list, err := o.ListVideos(ctx, q)
		return rowsOf(list, err)
	}},
	"ListAccounts": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		list, err := o.ListAccounts(ctx, store.AccountQuery{CollectionID: &x.collection, Order: store.Order{Column: "username"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"ListCollections": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		list, err := o.ListCollections(ctx, store.CollectionQuery{ParentID: &x.collection, Order: store.Order{Column: "video_count"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"AccountHistory": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		points, err := o.AccountHistory(ctx, store.AccountRef{ID: x.account}, x.today-30, x.today)
		return answered(err, points)
	}},
	"TrackedAccountIDs": {func(ctx context.Context, o *store.Org, x, mine things) answer {
		ids, err := o.TrackedAccountIDs(ctx, []link.Link{x.profile, mine.profile})
		return answered(err, ids)
	}},
	"TrackAccounts": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			tracked, err := o.TrackAccounts(ctx, store.TrackAccountsRequest{Links: []link.Link{x.profile}, Type: store.TrackAll, CollectionNames: []string{x.name}, Enqueue: 1})
			return answered(err, tracked)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			tracked, err := o.TrackAccounts(ctx, store.TrackAccountsRequest{Links: []link.Link{mine.profile}, Type: store.TrackAll, CollectionIDs: []uuid.UUID{x.collection}})
			return answered(err, tracked)
		},
	},
	"StopAccounts": {func(ctx context.Context, o *store.Org, x, mine things) answer {
		unmatched, err := o.StopAccounts(ctx, []store.AccountRef{{ID: x.account}, {Link: x.profile}, {ID: mine.account}}, false)
		return answered(err, unmatched)
	}},
	"RefreshAccount": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		r, err := o.RefreshAccount(ctx, store.AccountRef{ID: x.account})
		_, byLink := o.RefreshAccount(ctx, store.AccountRef{Link: x.profile})
		return answered(err, r, answered(byLink))
	}},
	"AccountStatistics": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		s, err := o.AccountStatistics(ctx)
		return answered(err, s)
	}},
	"OrganisationHistory": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		points, err := o.OrganisationHistory(ctx, x.today-30, x.today)
		return answered(err, points)
	}},
	"Collection": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		c, err := o.Collection(ctx, x.collection, true)
		return answered(err, c)
	}},
	"Collections": {
		collectionsBy(func(q *store.CollectionQuery, x things) { q.ParentID = &x.collection }),
		collectionsBy(func(q *store.CollectionQuery, x things) { q.ParentID, q.Subtree = &x.collection, true }),
		collectionsBy(func(q *store.CollectionQuery, x things) {
			q.Roots, q.Order.Column, q.Window.After = true, "video_count", &store.Position{Value: "1", ID: x.collection}
		}),
		collectionsBy(func(q *store.CollectionQuery, x things) {
			q.Order.Column, q.Window.After = "account_count", &store.Position{Value: "1", ID: x.collection}
		}),
	},
	"CreateCollection": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		c, err := o.CreateCollection(ctx, store.NewCollection{Name: "New", Access: store.AccessPrivate, ParentID: &x.collection})
		return answered(err, c)
	}},
	"UpdateCollection": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			c, err := o.UpdateCollection(ctx, x.collection, store.CollectionPatch{Name: new("Mine now"), Hashtags: &[]string{"x"}})
			return answered(err, c)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			c, err := o.UpdateCollection(ctx, mine.collection, below(&x.collection))
			return answered(err, c)
		},
	},
	"DeleteCollection": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(o.DeleteCollection(ctx, x.collection, nil))
	}},
	"AddVideos": {
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.AddVideos(ctx, x.collection, []uuid.UUID{mine.video})
			return answered(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.AddVideos(ctx, mine.collection, []uuid.UUID{x.video, mine.video})
			return answered(err, n)
		},
	},
	"AddAccounts": {
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.AddAccounts(ctx, x.collection, []uuid.UUID{mine.account})
			return answered(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.AddAccounts(ctx, mine.collection, []uuid.UUID{x.account, mine.account})
			return answered(err, n)
		},
	},
	"RemoveVideos": {
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.RemoveVideos(ctx, x.collection, []uuid.UUID{mine.video, x.video})
			return answered(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.RemoveVideos(ctx, mine.collection, []uuid.UUID{x.video})
			return answered(err, n)
		},
	},
	"RemoveAccounts": {
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.RemoveAccounts(ctx, x.collection, []uuid.UUID{mine.account, x.account})
			return answered(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			n, err := o.RemoveAccounts(ctx, mine.collection, []uuid.UUID{x.account})
			return answered(err, n)
		},
	},
	"Campaign": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		c, err := o.Campaign(ctx, store.CampaignQuery{Collection: x.collection, IncludeChildren: true, From: x.today - 30, To: x.today, Points: true})
		return answered(err, c)
	}},
	"CreateReport": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		r, err := o.CreateReport(ctx, newReport(x))
		return answered(err, r)
	}},
	"Report": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		r, err := o.Report(ctx, x.report)
		return answered(err, r)
	}},
	"ReportDocument": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		r, document, err := o.ReportDocument(ctx, x.report)
		return answered(err, r, document)
	}},
	"ListPoints": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		list, err := o.ListPoints(ctx, store.PointsQuery{Until: math.MaxInt64, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"ListReports": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		list, err := o.ListReports(ctx, store.ReportQuery{CollectionID: x.collection, Order: store.Order{Column: "number"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"CreateToken": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		token, secret, err := o.CreateToken(ctx, readToken(x.name))
		return answered(err, token, len(secret))
	}},
	"Tokens": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		tokens, err := o.Tokens(ctx)
		return answered(err, tokens)
	}},
	"RevokeToken": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(o.RevokeToken(ctx, x.token))
	}},
	"CreateWebhook": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		w, err := o.CreateWebhook(ctx, store.NewWebhook{URL: "https://hooks.example.com/" + x.name, Secret: []byte("s")})
		return answered(err, w)
	}},
	"Webhooks": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		webhooks, err := o.Webhooks(ctx)
		return answered(err, webhooks)
	}},
	"Webhook": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		w, err := o.Webhook(ctx, x.webhook)
		return answered(err, w)
	}},
	"UpdateWebhook": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		w, err := o.UpdateWebhook(ctx, x.webhook, store.WebhookChange{Enabled: new(false)})
		return answered(err, w)
	}},
	"DeleteWebhook": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(o.DeleteWebhook(ctx, x.webhook))
	}},
	"RotateWebhookSecret": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		w, err := o.RotateWebhookSecret(ctx, x.webhook, uuid.Nil, []byte("t"))
		return answered(err, w)
	}},
	"TestWebhook": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		d, err := o.TestWebhook(ctx, x.webhook, uuid.Nil)
		return answered(err, d)
	}},
	"ReplayDelivery": {
		func(ctx context.Context, o *store.Org, x, _ things) answer {
			d, err := o.ReplayDelivery(ctx, x.webhook, x.delivery, uuid.Nil)
			return answered(err, d)
		},
		func(ctx context.Context, o *store.Org, x, mine things) answer {
			d, err := o.ReplayDelivery(ctx, mine.webhook, x.delivery, uuid.Nil)
			return answered(err, d)
		},
	},
	"ListDeliveries": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		list, err := o.ListDeliveries(ctx, store.DeliveryQuery{WebhookID: x.webhook, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"OpenFeed": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		missing, err := o.OpenFeed(ctx)
		return answered(err, missing)
	}},
	"ListEvents": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		list, err := o.ListEvents(ctx, store.EventQuery{Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"PauseUnusedFeed": {func(ctx context.Context, o *store.Org, _, _ things) answer { return answered(o.PauseUnusedFeed(ctx)) }},
	"DeleteExpiredEvents": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		n, err := o.DeleteExpiredEvents(ctx)
		return answered(err, n)
	}},
	"BeginKey": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		k, err := o.BeginKey(ctx, "TrackVideo", x.key, []byte("f"))
		return answered(err, k)
	}},
	"FinishKey": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(o.FinishKey(ctx, "TrackVideo", x.key, store.KeptAnswer{Status: 200}))
	}},
	"ReleaseKey": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(o.ReleaseKey(ctx, "TrackVideo", x.key))
	}},
	"Import": {func(ctx context.Context, o *store.Org, x, mine things) answer {
		day := backfill.LoadPoint{At: store.InstantOf((x.today - 2).Time()), Counts: store.Counts{Views: new(int64(5))}}
		done, err := backfill.Import(ctx, o, []backfill.ImportVideo{{Link: x.clip, Title: "Imported", Points: []backfill.LoadPoint{day}}, {Link: mine.clip, Points: []backfill.LoadPoint{day}}}, false)
		return answered(err, done)
	}},
	"Export": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		histories, err := o.Export(ctx, store.ExportQuery{To: x.today, IncludeRemoved: true, Limit: 100})
		return answered(err, histories)
	}},
	"Load": {func(ctx context.Context, o *store.Org, x, _ things) answer {
		return answered(backfill.Load(ctx, o, backfill.LoadBatch{Source: "test", Collections: []backfill.LoadCollection{{ID: x.collection, Name: "Loaded"}},
			Accounts: []backfill.LoadAccount{{Account: store.Account{ID: x.account, Platform: link.TikTok, ExternalID: new("loaded"), Username: "loaded"}}}}))
	}},
}

// rowsOf returns the rows of a list as an answer.
func rowsOf[R any](list *store.List[R], err error) answer {
	if err != nil {
		return answered(err, nil)
	}
	return answered(nil, list.Rows)
}

// videosBy returns a function that calls Org.Videos. The function set adds conditions to the query.
func videosBy(set func(*store.VideoQuery, things)) func(context.Context, *store.Org, things, things) answer {
	return func(ctx context.Context, o *store.Org, x, _ things) answer {
		q := storetest.OrderedBy("latest_views", true)
		q.IncludeRemoved = true
		set(&q, x)
		page, err := o.Videos(ctx, q)
		return answered(err, page)
	}
}

// accountsBy returns a function that calls Org.Accounts. The function set adds conditions to the query.
func accountsBy(set func(*store.AccountQuery, things)) func(context.Context, *store.Org, things, things) answer {
	return func(ctx context.Context, o *store.Org, x, _ things) answer {
		q := store.AccountQuery{IncludeLinked: true, IncludeRemoved: true, Order: store.Order{Column: "total_views", Descending: true}, Window: store.Window{Limit: 100}}
		set(&q, x)
		page, err := o.Accounts(ctx, q)
		return answered(err, page)
	}
}

// collectionsBy returns a function that calls Org.Collections. The function set adds conditions to the query.
func collectionsBy(set func(*store.CollectionQuery, things)) func(context.Context, *store.Org, things, things) answer {
	return func(ctx context.Context, o *store.Org, x, _ things) answer {
		q := store.CollectionQuery{Order: store.Order{Column: "name"}, Window: store.Window{Limit: 100}}
		set(&q, x)
		page, err := o.Collections(ctx, q)
		return answered(err, page)
	}
}

// newReport returns the values of a report of the collection of x.
func newReport(x things) store.NewReport {
	return store.NewReport{CollectionID: x.collection, IncludeChildren: true, From: x.today - 30, To: x.today, CreatedBy: store.NewID(),
		Document: func(w io.Writer, _ store.Report, c store.Campaign) error { return json.NewEncoder(w).Encode(c.Days) }}
}

func readToken(name string) store.NewToken {
	return store.NewToken{Name: name, Scopes: []store.Scope{store.ScopeRead}}
}

// tenant adds a video, an account, a collection, a report, a token, a webhook, a delivery and an idempotency key to an organisation. It returns their ids, links and names.
func tenant(t *testing.T, db *storetest.DB, o *store.Org, handle string, n int) things {
	t.Helper()
	x := unknownThings(t, db, handle, n)
	tracked, err := o.Track(t.Context(), store.TrackRequest{Links: []link.Link{x.clip}, CollectionNames: []string{x.name}, Enqueue: 1})
	require.NoError(t, err)
	accounts, err := o.TrackAccounts(t.Context(), store.TrackAccountsRequest{Links: []link.Link{x.profile}, Type: store.TrackAll, CollectionNames: []string{x.name}, Enqueue: 1})
	require.NoError(t, err)
	x.video, x.account = tracked[0].VideoID, accounts[0].AccountID
	x.collection = storetest.VideoOf(t, o, x.clip).Labels[0].ID
	storetest.Collection(t, o, "child", &x.collection)
	made, err := o.CreateReport(t.Context(), newReport(x))
	require.NoError(t, err)
	x.report = made.ID
	token, _, err := o.CreateToken(t.Context(), readToken(x.name))
	require.NoError(t, err)
	x.token = token.ID
	webhook, err := o.CreateWebhook(t.Context(), store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
	require.NoError(t, err)
	delivery, err := o.TestWebhook(t.Context(), webhook.ID, uuid.Nil)
	require.NoError(t, err)
	x.webhook, x.delivery = webhook.ID, delivery.ID
	begin(t, o, "TrackVideo", x.key, "g")
	return x
}

// unknownThings returns ids, links and names that no organisation has.
func unknownThings(t *testing.T, db *storetest.DB, handle string, n int) things {
	t.Helper()
	l := storetest.Clip(t, n)
	return things{video: store.NewID(), account: store.NewID(), collection: store.NewID(), report: store.NewID(), token: store.NewID(), webhook: store.NewID(), delivery: store.NewID(), name: handle, key: handle, today: storetest.Today(db),
		clip: storetest.ParseLink(t, strings.Replace(l.Canonical, "someone", handle, 1)), profile: storetest.ParseLink(t, "https://www.tiktok.com/@"+handle)}
}

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// normalise returns an answer as text in which placeholders replace the things x and all other ids. So answers of different organisations
// can be compared.
func normalise(t *testing.T, a answer, x things) string {
	t.Helper()
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	text := strings.NewReplacer(x.video.String(), "VIDEO", x.account.String(), "ACCOUNT", x.collection.String(), "COLLECTION", x.report.String(), "REPORT", x.token.String(), "TOKEN", x.webhook.String(), "WEBHOOK", x.delivery.String(), "DELIVERY",
		x.clip.ID, "CLIP", x.name, "NAME").Replace(string(raw))
	seen := map[string]string{}
	return anyUUID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = "ID" + string(rune('A'+len(seen)))
		}
		return seen[id]
	})
}

// takesNoID are the methods whose arguments cannot name a record of another organisation.
var takesNoID = []string{"ID", "VideoStatistics", "AccountStatistics", "OrganisationHistory", "Export", "ListPoints", "Load", "Version", "At", "Tokens", "CreateToken",
	"CreateWebhook", "Webhooks", "OpenFeed", "ListEvents", "PauseUnusedFeed", "DeleteExpiredEvents"}

// readsOnly are the methods of Org that write nothing.
var readsOnly = []string{"ID", "Video", "Videos", "TrackedVideoIDs", "History", "VideoStatistics", "Account", "Accounts", "AccountVideos", "AccountHistory",
	"TrackedAccountIDs", "AccountStatistics", "OrganisationHistory", "Export", "Collection", "Collections", "Version", "At",
	"ListVideos", "ListAccounts", "ListAccountVideos", "ListCollections", "Campaign", "Report", "ReportDocument", "ListReports", "ListPoints", "Tokens",
	"Webhooks", "Webhook", "ListDeliveries", "ListEvents"}

func TestOrg_treatsRecordsOfOtherOrganisationsAsUnknown(t *testing.T) {
	t.Parallel()
	methods := reflect.TypeFor[*store.Org]()
	names := []string{"Import", "Load"} // functions of package backfill that take an Org
	for method := range methods.Methods() {
		names = append(names, method.Name)
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(tenantCalls)), "tenantCalls has calls of each exported method of Org")

	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.FullOrg(t, db) // also runs the SQL statements of collectors, which mutate checks below
		other := storetest.NewOrg(t, db)
		foreign := tenant(t, db, other, "foreign", 5)
		// The unknown ids are created right after the ids of the other organisation. So in an order by id, both come before the ids of the
		// calling organisation.
		unknown, n := unknownThings(t, db, "phantom", 2), 10
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{foreign.clip: {Views: new(int64(5)), Title: new("foreign #foreign")}})
		otherRows := storetest.StoredRows(t, db, other)

		// Three organisations have equal records. The first calls methods with ids of another organisation, the second with unknown ids,
		// and the third with its own ids.
		type caller struct {
			org  *store.Org
			mine things
		}
		newCallers := func() (a [3]caller) {
			n += 10
			titles := map[link.Link]ingest.VideoFacts{}
			for i := range a {
				a[i].org = storetest.NewOrg(t, db)
				a[i].mine = tenant(t, db, a[i].org, "mine", n)
				titles[a[i].mine.clip] = ingest.VideoFacts{Title: new("mine #mine")}
			}
			storetest.Measure(t, db, db.Clock.Now(), titles)
			return a
		}
		readers := newCallers()
		for _, name := range names {
			for i, call := range tenantCalls[name] {
				a, reads := readers, slices.Contains(readsOnly, name)
				var before map[string][]string
				if !reads {
					a = newCallers()
					before = storetest.StoredRows(t, db, a[2].org)
				}
				unknown.clip = unknownThings(t, db, "phantom", n+1).clip
				want := normalise(t, call(t.Context(), a[1].org, unknown, a[1].mine), unknown)
				require.Equal(t, want, normalise(t, call(t.Context(), a[0].org, foreign, a[0].mine), foreign), "%s, call %d", name, i)
				own := normalise(t, call(t.Context(), a[2].org, a[2].mine, a[2].mine), a[2].mine)
				if !reads {
					require.Equal(t, otherRows, storetest.StoredRows(t, db, other), "%s, call %d: rows of another organisation changed", name, i)
				}
				if !slices.Contains(takesNoID, name) && own == want {
					require.NotEqual(t, before, storetest.StoredRows(t, db, a[2].org), "%s, call %d: the call ignores its arguments", name, i)
				}
			}
		}
		require.Equal(t, otherRows, storetest.StoredRows(t, db, other))
		t.Run("the guard refuses each statement without one of its conditions", func(t *testing.T) { mutate(t, db.Guard.Statements()) })
	})
}
