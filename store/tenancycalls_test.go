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

// tenantCalls maps the name of each method of Org to functions that call the method. It also has the functions Import and Seed
// of package backfill. The parameter x has references that can belong to another organisation; "mine" has references of the calling organisation.
var tenantCalls = map[string][]func(ctx context.Context, o *store.Org, x, mine references) answer{
	"ID": {func(_ context.Context, o *store.Org, _, _ references) answer { return newAnswer(nil, o.ID()) }},
	"Video": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			v, err := o.Video(ctx, store.Ref{ID: x.video})
			return newAnswer(err, v)
		},
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			v, err := o.Video(ctx, store.Ref{Link: x.videoLink})
			return newAnswer(err, v)
		},
	},
	"ListVideos": {
		functionThatListsVideos(func(q *store.VideoQuery, x references) {
			q.Order.Column, q.Collections = "created_at", []string{x.name, x.collection.String()}
		}),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.LinkedAccountID = &x.account }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.CollectionID = &x.collection }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Collections = []string{x.name} }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Collections = []string{x.collection.String()} }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Link = &x.videoLink }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Username = &x.accountLink.Handle }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Hashtag = &x.name }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) { q.Words = &x.name }),
		functionThatListsVideos(func(q *store.VideoQuery, x references) {
			q.Order.Descending, q.Window.After = false, &store.Position{Null: true, ID: x.video}
		}),
	},
	"TrackedVideoIDs": {func(ctx context.Context, o *store.Org, x, mine references) answer {
		ids, err := o.TrackedVideoIDs(ctx, []link.Link{x.videoLink, mine.videoLink})
		return newAnswer(err, ids)
	}},
	"History": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			points, err := o.History(ctx, store.Ref{ID: x.video}, x.today-30, x.today)
			return newAnswer(err, points)
		},
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			points, err := o.History(ctx, store.Ref{Link: x.videoLink}, x.today-700, x.today)
			return newAnswer(err, points)
		},
	},
	"Track": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			tracked, err := o.Track(ctx, store.TrackRequest{Links: []link.Link{x.videoLink}, CollectionNames: []string{x.name}, Immediate: 1})
			return newAnswer(err, tracked)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			tracked, err := o.Track(ctx, store.TrackRequest{Links: []link.Link{mine.videoLink}, CollectionIDs: []uuid.UUID{x.collection}})
			return newAnswer(err, tracked)
		},
	},
	"StopVideos": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			untracked, err := o.StopVideos(ctx, []uuid.UUID{x.video, mine.video})
			return newAnswer(err, untracked)
		},
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			untracked, err := o.StopVideos(ctx, []uuid.UUID{x.video})
			return newAnswer(err, untracked)
		},
	},
	"RefreshVideo": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		r, err := o.RefreshVideo(ctx, store.Ref{ID: x.video}, nil)
		_, byLink := o.RefreshVideo(ctx, store.Ref{Link: x.videoLink}, nil)
		return newAnswer(err, r, newAnswer(byLink))
	}},
	"VideoStatistics": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		s, err := o.VideoStatistics(ctx)
		return newAnswer(err, s)
	}},
	"Account": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			a, err := o.Account(ctx, store.Ref{ID: x.account})
			return newAnswer(err, a)
		},
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			a, err := o.Account(ctx, store.Ref{Link: x.accountLink})
			return newAnswer(err, a)
		},
	},
	"ListAccounts": {
		functionThatListsAccounts(func(q *store.AccountQuery, x references) { q.CollectionID = &x.collection }),
		functionThatListsAccounts(func(q *store.AccountQuery, x references) { q.Collections = []string{x.name, x.collection.String()} }),
		functionThatListsAccounts(func(q *store.AccountQuery, x references) { q.Username = &x.accountLink.Handle }),
		functionThatListsAccounts(func(q *store.AccountQuery, x references) {
			q.Order.Descending, q.Window.After = false, &store.Position{Null: true, ID: x.account}
		}),
	},
	"OnVersion": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		var version store.Version
		list, err := o.OnVersion(func(v store.Version) { version = v }).ListVideos(ctx, store.VideoQuery{Order: storetest.OrderedBy("created_at", true).Order, Window: store.Window{Limit: 5}})
		if err != nil {
			return newAnswer(err, nil)
		}
		return newAnswer(nil, []any{version, list.Rows})
	}},
	"Version": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		version, err := o.Version(ctx)
		return newAnswer(err, version)
	}},
	"AtVersion": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		version, err := o.Version(ctx)
		if err != nil {
			return newAnswer(err, nil)
		}
		list, err := o.AtVersion(version).ListVideos(ctx, storetest.OrderedBy("created_at", true))
		return rowsOf(list, err)
	}},
	"ListAccountVideos": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		list, err := o.ListAccountVideos(ctx, store.Ref{ID: x.account}, storetest.OrderedBy("created_at", true))
		return rowsOf(list, err)
	}},
	"CollectionSums": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		sums, err := o.CollectionSums(ctx)
		return newAnswer(err, sums)
	}},
	"DetailedCollectionTotals": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		totals, err := o.DetailedCollectionTotals(ctx, store.CollectionTotalsQuery{Collection: x.collection, From: x.today - 30, To: x.today, WithPrevious: true})
		return newAnswer(err, totals.Videos)
	}},
	"AccountGains": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		gains, err := o.AccountGains(ctx, x.account, x.today-30, x.today, 5)
		return newAnswer(err, gains)
	}},
	"AccountHistory": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		points, err := o.AccountHistory(ctx, store.Ref{ID: x.account}, x.today-30, x.today)
		return newAnswer(err, points)
	}},
	"TrackedAccountIDs": {func(ctx context.Context, o *store.Org, x, mine references) answer {
		ids, err := o.TrackedAccountIDs(ctx, []link.Link{x.accountLink, mine.accountLink})
		return newAnswer(err, ids)
	}},
	"TrackAccounts": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			tracked, err := o.TrackAccounts(ctx, store.TrackRequest{Links: []link.Link{x.accountLink}, Type: store.TrackAll, CollectionNames: []string{x.name}})
			return newAnswer(err, tracked)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			tracked, err := o.TrackAccounts(ctx, store.TrackRequest{Links: []link.Link{mine.accountLink}, Type: store.TrackAll, CollectionIDs: []uuid.UUID{x.collection}})
			return newAnswer(err, tracked)
		},
	},
	"StopAccounts": {func(ctx context.Context, o *store.Org, x, mine references) answer {
		untracked, err := o.StopAccounts(ctx, []uuid.UUID{x.account, mine.account})
		return newAnswer(err, untracked)
	}},
	"StopAccount": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		videos, found, err := o.StopAccount(ctx, x.account)
		return newAnswer(err, videos, found)
	}},
	"RefreshAccount": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		r, err := o.RefreshAccount(ctx, store.Ref{ID: x.account}, nil)
		_, byLink := o.RefreshAccount(ctx, store.Ref{Link: x.accountLink}, nil)
		return newAnswer(err, r, newAnswer(byLink))
	}},
	"AccountStatistics": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		s, err := o.AccountStatistics(ctx)
		return newAnswer(err, s)
	}},
	"OrganisationHistory": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		points, err := o.OrganisationHistory(ctx, x.today-30, x.today)
		return newAnswer(err, points)
	}},
	"Collection": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		c, err := o.Collection(ctx, x.collection, true)
		return newAnswer(err, c)
	}},
	"ListCollections": {
		functionThatListsCollections(func(q *store.CollectionQuery, x references) {
			q.ParentID, q.Order.Column = &x.collection, "video_count"
		}),
		functionThatListsCollections(func(q *store.CollectionQuery, x references) { q.ParentID = &x.collection }),
		functionThatListsCollections(func(q *store.CollectionQuery, x references) { q.ParentID, q.Subtree = &x.collection, true }),
		functionThatListsCollections(func(q *store.CollectionQuery, x references) {
			q.Roots, q.Order.Column, q.Window.After = true, "video_count", &store.Position{Value: "1", ID: x.collection}
		}),
		functionThatListsCollections(func(q *store.CollectionQuery, x references) {
			q.Order.Column, q.Window.After = "account_count", &store.Position{Value: "1", ID: x.collection}
		}),
	},
	"CreateCollection": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		c, err := o.CreateCollection(ctx, store.NewCollection{Name: "New", Access: store.AccessPrivate, ParentID: &x.collection})
		return newAnswer(err, c)
	}},
	"UpdateCollection": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			c, err := o.UpdateCollection(ctx, x.collection, store.CollectionPatch{Name: new("Mine now"), Hashtags: &[]string{"x"}})
			return newAnswer(err, c)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			c, err := o.UpdateCollection(ctx, mine.collection, patchWithParent(&x.collection))
			return newAnswer(err, c)
		},
	},
	"DeleteCollection": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.DeleteCollection(ctx, x.collection, nil))
	}},
	"AddVideos": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.AddVideos(ctx, x.collection, []uuid.UUID{mine.video}, nil)
			return newAnswer(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.AddVideos(ctx, mine.collection, []uuid.UUID{x.video, mine.video}, nil)
			return newAnswer(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.AddVideos(ctx, x.collection, []uuid.UUID{x.video, mine.video}, new(store.Date(20_000)))
			return newAnswer(err, n)
		},
	},
	"AddAccounts": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.AddAccounts(ctx, x.collection, []uuid.UUID{mine.account})
			return newAnswer(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.AddAccounts(ctx, mine.collection, []uuid.UUID{x.account, mine.account})
			return newAnswer(err, n)
		},
	},
	"TimesOfAdding": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			times, err := o.TimesOfAdding(ctx, x.collection, "video", []uuid.UUID{x.video, mine.video})
			return newAnswer(err, times)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			times, err := o.TimesOfAdding(ctx, mine.collection, "account", []uuid.UUID{x.account})
			return newAnswer(err, times)
		},
	},
	"RemoveVideos": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.RemoveVideos(ctx, x.collection, []uuid.UUID{mine.video, x.video})
			return newAnswer(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.RemoveVideos(ctx, mine.collection, []uuid.UUID{x.video})
			return newAnswer(err, n)
		},
	},
	"RemoveAccounts": {
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.RemoveAccounts(ctx, x.collection, []uuid.UUID{mine.account, x.account})
			return newAnswer(err, n)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			n, err := o.RemoveAccounts(ctx, mine.collection, []uuid.UUID{x.account})
			return newAnswer(err, n)
		},
	},
	"CollectionTotals": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		c, err := o.CollectionTotals(ctx, store.CollectionTotalsQuery{Collection: x.collection, IncludeChildren: true, From: x.today - 30, To: x.today, ForReport: true})
		return newAnswer(err, c)
	}},
	"CreateReport": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		r, err := o.CreateReport(ctx, newReport(x))
		return newAnswer(err, r)
	}},
	"LastShareVisit": {func(ctx context.Context, o *store.Org, x, _ references) answer { // see also TestLastShareVisit_isNilForAnotherOrganisation
		at, err := o.LastShareVisit(ctx, x.name)
		return newAnswer(err, at)
	}},
	"Report": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		r, err := o.Report(ctx, x.report)
		return newAnswer(err, r)
	}},
	"UpdateReport": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		r, err := o.UpdateReport(ctx, x.report, store.SharingPatch{Access: new(store.AccessPublic)})
		return newAnswer(err, r)
	}},
	"ReportDocument": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		document, err := o.ReportDocument(ctx, x.report)
		return newAnswer(err, document)
	}},
	"ReadReport": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		var document []byte
		err := o.ReadReport(ctx, x.report, func(r io.Reader) (err error) {
			document, err = io.ReadAll(r)
			return err
		})
		return newAnswer(err, document)
	}},
	"ListPoints": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		list, err := o.ListPoints(ctx, store.PointsQuery{Until: math.MaxInt64, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"ListReports": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		list, err := o.ListReports(ctx, store.ReportQuery{CollectionID: x.collection, Order: store.Order{Column: "number"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"CreateToken": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		token, secret, err := o.CreateToken(ctx, newReadToken(x.name))
		return newAnswer(err, token, len(secret))
	}},
	"Tokens": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		tokens, err := o.Tokens(ctx)
		return newAnswer(err, tokens)
	}},
	"RevokeToken": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.RevokeToken(ctx, x.token))
	}},
	"CreateWebhook": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		w, err := o.CreateWebhook(ctx, store.NewWebhook{URL: "https://hooks.example.com/" + x.name, Secret: []byte("s")})
		return newAnswer(err, w)
	}},
	"Webhooks": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		webhooks, err := o.Webhooks(ctx)
		return newAnswer(err, webhooks)
	}},
	"Webhook": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		w, err := o.Webhook(ctx, x.webhook)
		return newAnswer(err, w)
	}},
	"WebhookPauseEnd": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		at, err := o.WebhookPauseEnd(ctx, x.webhook)
		return newAnswer(err, at)
	}},
	"UpdateWebhook": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		w, err := o.UpdateWebhook(ctx, x.webhook, store.WebhookChange{Enabled: new(false)})
		return newAnswer(err, w)
	}},
	"DeleteWebhook": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.DeleteWebhook(ctx, x.webhook))
	}},
	"RotateWebhookSecret": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		w, err := o.RotateWebhookSecret(ctx, x.webhook, uuid.Nil, []byte("t"))
		return newAnswer(err, w)
	}},
	"TestWebhook": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		d, err := o.TestWebhook(ctx, x.webhook, uuid.Nil)
		return newAnswer(err, d)
	}},
	"ReplayDelivery": {
		func(ctx context.Context, o *store.Org, x, _ references) answer {
			d, err := o.ReplayDelivery(ctx, x.webhook, x.delivery, uuid.Nil)
			return newAnswer(err, d)
		},
		func(ctx context.Context, o *store.Org, x, mine references) answer {
			d, err := o.ReplayDelivery(ctx, mine.webhook, x.delivery, uuid.Nil)
			return newAnswer(err, d)
		},
	},
	"ListDeliveries": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		list, err := o.ListDeliveries(ctx, store.DeliveryQuery{WebhookID: x.webhook, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"OpenFeed": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		missing, newest, err := o.OpenFeed(ctx)
		return newAnswer(err, missing, newest)
	}},
	"ListEvents": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		list, err := o.ListEvents(ctx, store.EventQuery{Window: store.Window{Limit: 100}})
		return rowsOf(list, err)
	}},
	"PauseUnusedFeed": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		return newAnswer(o.PauseUnusedFeed(ctx))
	}},
	"DeleteExpiredEvents": {func(ctx context.Context, o *store.Org, _, _ references) answer {
		n, err := o.DeleteExpiredEvents(ctx)
		return newAnswer(err, n)
	}},
	"ReserveKey": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		k, err := o.ReserveKey(ctx, "TrackVideo", x.key, []byte("f"))
		return newAnswer(err, k)
	}},
	"FinishKey": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.FinishKey(ctx, "TrackVideo", x.key, store.KeptResponse{Status: 200}))
	}},
	"RenewKey": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.RenewKey(ctx, "TrackVideo", x.key))
	}},
	"ReleaseKey": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(o.ReleaseKey(ctx, "TrackVideo", x.key))
	}},
	"Import": {func(ctx context.Context, o *store.Org, x, mine references) answer {
		day := backfill.Point{At: store.InstantOf((x.today - 2).Time()), Counts: store.Counts{Views: new(int64(5))}}
		done, err := backfill.Import(ctx, o, []backfill.ImportVideo{{Link: x.videoLink, Title: "Imported", Points: []backfill.Point{day}}, {Link: mine.videoLink, Points: []backfill.Point{day}}}, false)
		return newAnswer(err, done)
	}},
	"Export": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		histories, err := o.Export(ctx, store.ExportQuery{To: x.today, IncludeRemoved: true, Limit: 100})
		return newAnswer(err, histories)
	}},
	"Seed": {func(ctx context.Context, o *store.Org, x, _ references) answer {
		return newAnswer(backfill.Seed(ctx, o, backfill.SeedBatch{Source: "test", Collections: []backfill.SeedCollection{{ID: x.collection, Name: "Loaded"}},
			Accounts: []backfill.SeedAccount{{Account: store.Account{ID: x.account, Platform: link.TikTok, ExternalID: new("loaded"), Username: "loaded"}}}}))
	}},
}

// rowsOf returns an answer with the rows and the total of a list, or an answer with only the error.
func rowsOf[R any](list *store.List[R], err error) answer {
	if err != nil {
		return newAnswer(err, nil)
	}
	return newAnswer(nil, list.Rows, list.Total)
}

// functionThatListsVideos returns a function that calls Org.ListVideos. The function addConditions adds conditions to the query.
func functionThatListsVideos(addConditions func(*store.VideoQuery, references)) func(context.Context, *store.Org, references, references) answer {
	return func(ctx context.Context, o *store.Org, x, _ references) answer {
		q := storetest.OrderedBy("latest_views", true)
		q.IncludeRemoved = true
		addConditions(&q, x)
		list, err := o.ListVideos(ctx, q)
		return rowsOf(list, err)
	}
}

// functionThatListsAccounts returns a function that calls Org.ListAccounts. The function addConditions adds conditions to the query.
func functionThatListsAccounts(addConditions func(*store.AccountQuery, references)) func(context.Context, *store.Org, references, references) answer {
	return func(ctx context.Context, o *store.Org, x, _ references) answer {
		q := store.AccountQuery{IncludeLinked: true, IncludeRemoved: true, Order: store.Order{Column: "total_views", Descending: true}, Window: store.Window{Limit: 100}}
		addConditions(&q, x)
		list, err := o.ListAccounts(ctx, q)
		return rowsOf(list, err)
	}
}

// functionThatListsCollections returns a function that calls Org.ListCollections. The function addConditions adds conditions to the query.
func functionThatListsCollections(addConditions func(*store.CollectionQuery, references)) func(context.Context, *store.Org, references, references) answer {
	return func(ctx context.Context, o *store.Org, x, _ references) answer {
		q := store.CollectionQuery{Order: store.Order{Column: "name"}, Window: store.Window{Limit: 100}}
		addConditions(&q, x)
		list, err := o.ListCollections(ctx, q)
		return rowsOf(list, err)
	}
}

func newReport(x references) store.NewReport {
	return store.NewReport{CollectionID: x.collection, IncludeChildren: true, From: x.today - 30, To: x.today, CreatedBy: store.NewID(),
		Document: func(w io.Writer, _ store.Report, c store.CollectionTotals) error {
			return json.NewEncoder(w).Encode(c.Days)
		}}
}

func newReadToken(name string) store.NewToken {
	return store.NewToken{Name: name, Scopes: []store.Scope{store.ScopeRead}}
}
