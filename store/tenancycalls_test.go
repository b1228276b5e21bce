package store_test

import (
	"context"
	"encoding/json"
	"io"
	"math"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// tenantCalls has calls of every method of Org, by the name of the method. The parameter x has the ids, links and names that a call passes
// to the method. They can belong to another organisation. The parameter mine has the ids, links and names of the calling organisation.
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
	"Remembering": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		page, err := o.Remembering().Videos(ctx, store.VideoQuery{Order: storetest.OrderedBy("created_at", true).Order, Window: store.Window{Limit: 5}})
		return answered(err, page.Videos)
	}},
	"Remembered": {func(ctx context.Context, o *store.Org, _, _ things) answer {
		view := o.Remembering()
		_, err := view.Videos(ctx, store.VideoQuery{Order: storetest.OrderedBy("created_at", true).Order, Window: store.Window{Limit: 5}})
		_, known := view.Remembered()
		return answered(err, known)
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
	"ShareOpenedAt": {func(ctx context.Context, o *store.Org, x, _ things) answer { // see also TestShareOpenedAt_isNilForAnotherOrganisation
		at, err := o.ShareOpenedAt(ctx, x.name)
		return answered(err, at)
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

// rowsOf returns an answer with the rows of a list and the text of the error.
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
