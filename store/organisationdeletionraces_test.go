package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// Another process begins the deletion in the middle of a write. The write must succeed or be refused, and leave no row behind.
func TestDeleteOrganisation_leavesNoRowsOfConcurrentWrites(t *testing.T) {
	t.Parallel()
	writes := map[string]struct {
		fragment string // the deletion begins before the first statement that contains this text
		write    func(t *testing.T, db *storetest.DB, f fullOrganisation, token uuid.UUID, c queue.Claim) error
	}{
		"track": {"title_folded", func(t *testing.T, _ *storetest.DB, f fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			_, err := f.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinksFrom(t, 300, 5), Immediate: 5, Allowance: 5})
			return err
		}},
		"share": {"share_pages", func(t *testing.T, _ *storetest.DB, f fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			_, err := f.CreateCollection(t.Context(), store.NewCollection{Name: "New", Access: store.AccessPublic})
			return err
		}},
		"idempotency key": {"INSERT INTO idempotency_usage", func(t *testing.T, _ *storetest.DB, f fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			_, err := f.ReserveKey(t.Context(), "TrackVideo", "new", []byte("g"))
			return err
		}},
		"token use": {"token_uses", func(t *testing.T, db *storetest.DB, _ fullOrganisation, token uuid.UUID, _ queue.Claim) error {
			return db.SaveTokenUse(t.Context(), token, db.Clock.Now())
		}},
		"session": {"sessions", func(t *testing.T, db *storetest.DB, _ fullOrganisation, token uuid.UUID, _ queue.Claim) error {
			_, err := db.CreateSession(t.Context(), token)
			return err
		}},
		"token": {"api_tokens", func(t *testing.T, db *storetest.DB, f fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			_, _, err := db.CreateToken(t.Context(), f.ID(), "New", store.Scopes, 0)
			return err
		}},
		"picture": {"SELECT DISTINCT s.source", func(t *testing.T, db *storetest.DB, f fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			return db.RequestThumbnails(t.Context(), []store.Thumbnail{{Platform: f.own.Platform, ExternalID: f.own.ID, URL: "https://p16.tiktokcdn.com/new.jpeg"}})
		}},
		"answer, before its organisations are locked": {"UPDATE organisation_totals SET version", acknowledgeWithNewAccount},
		"answer, after its organisations are locked":  {"FROM videos", acknowledgeWithNewAccount},
		"answer, before the lease ends":               {"UPDATE fetch_targets SET claimed_by", acknowledgeWithNewAccount},
		"answer that continues with another source":   {"org_turns", acknowledgeOnward},
		"expiry": {"DELETE FROM idempotency_keys", func(t *testing.T, db *storetest.DB, _ fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			db.Clock.Advance(25 * time.Hour)
			_, err := db.DeleteExpired(t.Context(), storetest.NeverStop)
			return err
		}},
		"retention": {"UPDATE organisation_totals SET version", func(t *testing.T, db *storetest.DB, _ fullOrganisation, _ uuid.UUID, _ queue.Claim) error {
			_, err := db.ApplyRetention(t.Context(), storetest.NeverStop)
			return err
		}},
	}
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				doomed := newFullOrganisation(t, db, 100)
				kept := newFullOrganisation(t, db, 200)
				token, err := db.Authenticate(t.Context(), doomed.secret)
				require.NoError(t, err)
				storetest.Track(t, doomed.Org, storetest.VideoLink(t, 400))
				storetest.Track(t, kept.Org, storetest.VideoLink(t, 400))
				var claim queue.Claim
				for _, c := range storetest.Claim(t, db, link.TikTok, queue.KindVideo) {
					if slices.Contains(storetest.TargetIDs(c), storetest.VideoLink(t, 400).ID) {
						claim = c
					}
				}
				require.NotEmpty(t, claim.Targets)
				texts := doomed.texts(t, db)
				finish := storetest.RunBeforeStatement(t, db, w.fragment, func(s *store.Store) {
					require.NoError(t, s.DeleteOrganisation(t.Context(), doomed.ID(), ignoreRows))
				})
				if err := w.write(t, db, doomed, token.Token.ID, claim); err != nil {
					require.ErrorIs(t, err, store.ErrOrganisationDeleted)
				}
				finish()
				after := storedRows(t, db)
				require.Empty(t, rowsWith(after, texts...))
				require.Empty(t, rowsWith(map[string][]string{"thumbnails": after["thumbnails"]}, doomed.own.ID))
				require.Empty(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE asked_by = ?", doomed.ID()))
				storetest.RequireConsistent(t, db, kept.Org)
			})
		})
	}
}

// acknowledgeWithNewAccount stores answers that add an account and points.
func acknowledgeWithNewAccount(t *testing.T, db *storetest.DB, _ fullOrganisation, _ uuid.UUID, c queue.Claim) error {
	t.Helper()
	outcomes := make([]ingest.Outcome, len(c.Targets))
	for i, target := range c.Targets {
		outcomes[i] = storetest.Outcome(db, target, ingest.VideoFacts{Views: new(int64(3_000_000)), Title: new("#cat"), Username: new("stranger"), AccountID: new("77")})
	}
	return db.Acknowledge(t.Context(), c, store.InstantOf(db.Clock.Now()), outcomes)
}

// acknowledgeOnward stores outcomes of fetches that continue with another source.
func acknowledgeOnward(t *testing.T, db *storetest.DB, _ fullOrganisation, _ uuid.UUID, c queue.Claim) error {
	t.Helper()
	outcomes := make([]ingest.Outcome, len(c.Targets))
	for i, target := range c.Targets {
		outcomes[i] = ingest.Outcome{Target: target, State: queue.StateActive, NextAt: store.InstantOf(db.Clock.Now()), Route: "second", Answers: new(`{"running":true}`), Onward: true}
	}
	return db.Acknowledge(t.Context(), c, store.InstantOf(db.Clock.Now()), outcomes)
}

// A fetch of an account whose target gets another id moves the subscriptions of all organisations.
func TestDeleteOrganisation_leavesNoSubscriptionIfATargetIsRenamedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		doomed, kept := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		l := storetest.ParseLink(t, "https://www.tiktok.com/@renamed")
		storetest.Follow(t, doomed, store.TrackNewOnly, l)
		storetest.Follow(t, kept, store.TrackNewOnly, l)
		c := storetest.ClaimOne(t, db, link.TikTok, queue.KindAccount)
		// A target with the new id exists already, so the two targets are merged.
		db.Exec(t, `INSERT INTO fetch_targets (bucket, source, kind, external_id, handle, link, lane, base_lane, next_at, requested_at, attempts, state, detail)
 VALUES (0, 'tiktok', 'account', '42', 'renamed', ?, 1, 1, 0, 0, 0, 'active', '')`, l.Canonical)
		finish := storetest.RunBeforeStatement(t, db, "UPDATE fetch_targets SET base_lane", func(s *store.Store) {
			require.NoError(t, s.DeleteOrganisation(t.Context(), doomed.ID(), ignoreRows))
		})
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], ingest.AccountFacts{ID: new("42"), Username: new("renamed"), Followers: new(int64(1))})}))
		finish()
		require.Empty(t, rowsWith(storedRows(t, db), doomed.ID().String()))
		require.Equal(t, []string{"42"}, storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions"))

		// The deletion has begun when the answer arrives.
		doomed = storetest.NewOrg(t, db)
		other := storetest.ParseLink(t, "https://www.tiktok.com/@renamedtoo")
		storetest.Follow(t, doomed, store.TrackNewOnly, other)
		storetest.Follow(t, kept, store.TrackNewOnly, other)
		c = storetest.ClaimOne(t, db, link.TikTok, queue.KindAccount)
		ctx, cancel := context.WithCancel(t.Context())
		db.Guard.BeforeStatement("DELETE FROM fetch_subscriptions WHERE organisation_id", cancel)
		require.Error(t, db.DeleteOrganisation(ctx, doomed.ID(), ignoreRows))
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, []ingest.Outcome{storetest.AccountOutcome(db, c.Targets[0], ingest.AccountFacts{ID: new("43"), Username: new("renamedtoo"), Followers: new(int64(1))})}))
		require.NoError(t, db.DeleteOrganisation(t.Context(), doomed.ID(), ignoreRows))
		require.Empty(t, rowsWith(storedRows(t, db), doomed.ID().String()))
		require.Equal(t, []string{"42", "43"}, storetest.Column[string](t, db, "SELECT external_id FROM fetch_subscriptions ORDER BY 1"))
	})
}

func TestDeleteOrganisation_worksWhileCollectorsAndCallersWrite(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		doomed, kept := newFullOrganisation(t, db, 100), newFullOrganisation(t, db, 200)
		texts := doomed.texts(t, db)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		begun := make(chan struct{}, 2)
		running.Go(func() {
			for n := 1000; ctx.Err() == nil; n++ {
				for _, o := range []*store.Org{doomed.Org, kept.Org} {
					_, err := o.Track(t.Context(), store.TrackRequest{Links: storetest.VideoLinksFrom(t, n, 2), Immediate: 2, Allowance: 2})
					if o == kept.Org || err != nil {
						if o == kept.Org {
							require.NoError(t, err)
						} else {
							require.ErrorIs(t, err, store.ErrOrganisationDeleted)
						}
					}
				}
				if n == 1010 {
					begun <- struct{}{}
				}
			}
		})
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				storetest.SaveFactsForDueVideos(t, db, link.TikTok, func(queue.Target) ingest.VideoFacts {
					return ingest.VideoFacts{Views: new(int64(n)), Title: new("#cat"), Username: new("someone"), AccountID: new("42")}
				})
				if n == 5 {
					begun <- struct{}{}
				}
			}
		})
		<-begun
		<-begun
		require.NoError(t, db.Open(t).DeleteOrganisation(t.Context(), doomed.ID(), ignoreRows))
		stop()
		running.Wait()
		require.Empty(t, rowsWith(storedRows(t, db), texts...))
		storetest.RequireConsistent(t, db, kept.Org)
	})
}
