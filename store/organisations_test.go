package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestOrganisation_returnsTheOrganisationThatWasCreated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		first, err := db.CreateOrganisation(t.Context(), "  Müller & Söhne ", store.TierLimited, store.SubscriptionNone)
		require.NoError(t, err)
		require.Equal(t, store.Organisation{ID: first.ID, Name: "Müller & Söhne", Tier: store.TierLimited, Subscription: store.SubscriptionNone,
			CreatedAt: store.InstantOf(db.Clock.Now())}, first)
		db.Clock.Advance(time.Microsecond)
		second, err := db.CreateOrganisation(t.Context(), first.Name, store.TierPremium, store.SubscriptionActive)
		require.NoError(t, err, "several organisations must be able to have the same name")

		got, err := db.Organisation(t.Context(), first.ID)
		require.NoError(t, err)
		require.Equal(t, first, got)
		all, err := db.Organisations(t.Context())
		require.NoError(t, err)
		require.Equal(t, []store.Organisation{first, second}, all, "the oldest organisation must come first")

		require.NoError(t, db.SetTier(t.Context(), first.ID, store.TierBasic))
		require.NoError(t, db.SetSubscription(t.Context(), first.ID, store.SubscriptionActive))
		first.Tier, first.Subscription = store.TierBasic, store.SubscriptionActive
		got, err = db.Organisation(t.Context(), first.ID)
		require.NoError(t, err)
		require.Equal(t, first, got)
		got, err = db.Organisation(t.Context(), second.ID)
		require.NoError(t, err)
		require.Equal(t, second, got)
	})
}

func TestOrganisation_returnsNotFoundForAnUnknownID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		id := store.NewID()
		_, err := db.Organisation(t.Context(), id)
		for name, err := range map[string]error{"read": err, "tier": db.SetTier(t.Context(), id, store.TierBasic),
			"subscription": db.SetSubscription(t.Context(), id, store.SubscriptionActive)} {
			require.ErrorIs(t, err, store.ErrNotFound, name)
			require.ErrorContains(t, err, id.String(), name)
		}
	})
}

func TestCreateOrganisation_refusesInvalidNamesAndTiers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		for _, name := range []string{"", " \t", strings.Repeat("ü", 101)} {
			_, err := db.CreateOrganisation(t.Context(), name, store.TierBasic, store.SubscriptionActive)
			require.ErrorContains(t, err, "characters; it must have 1 to 100", name)
		}
		for name, character := range map[string]string{"a\nb": "U+000A", "a\x00": "U+0000", "a\u0085": "U+0085", "\u2028a": "U+2028", "a\u202eb": "U+202E", "a\u2067b": "U+2067"} {
			_, err := db.CreateOrganisation(t.Context(), name, store.TierBasic, store.SubscriptionActive)
			require.ErrorContains(t, err, character)
		}
		_, err := db.CreateOrganisation(t.Context(), strings.Repeat("ü", 100), store.TierBasic, store.SubscriptionActive)
		require.NoError(t, err)
		_, err = db.CreateOrganisation(t.Context(), "X", "gold", store.SubscriptionActive)
		require.Error(t, err)
		_, err = db.CreateOrganisation(t.Context(), "X", store.TierBasic, "trial")
		require.Error(t, err)
	})
}

func TestRenameOrganisation_changesTheNameAndTheVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx := t.Context()
		o := storetest.NewOrg(t, db)
		before, err := o.Version(ctx)
		require.NoError(t, err)
		require.NoError(t, db.RenameOrganisation(ctx, o.ID(), "  Müller & Söhne "))
		renamed, err := db.Organisation(ctx, o.ID())
		require.NoError(t, err)
		require.Equal(t, "Müller & Söhne", renamed.Name)
		after, err := o.Version(ctx)
		require.NoError(t, err)
		require.Greater(t, after.Version, before.Version)

		require.ErrorContains(t, db.RenameOrganisation(ctx, o.ID(), " "), "1 to 100 characters")
		require.ErrorContains(t, db.RenameOrganisation(ctx, o.ID(), "a\u202eb"), "U+202E")
		require.ErrorIs(t, db.RenameOrganisation(ctx, store.NewID(), "N"), store.ErrNotFound)
	})
}

func TestParseTrackingType_listsTheAllowedValuesInErrors(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.TrackingType{store.TrackLatest30, store.TrackLatest200, store.TrackNewOnly, store.TrackAll} {
		got, err := store.ParseTrackingType(string(kind))
		require.NoError(t, err)
		require.Equal(t, kind, got)
	}
	_, err := store.ParseTrackingType("latest")
	require.EqualError(t, err, `tracking_type "latest" is not one of latest_30, latest_200, new_only, all`)
}

func TestShortLinks_areStoredFor30Days(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		one, two := storetest.ParseLink(t, "https://vm.tiktok.com/ZMabcdefg/"), storetest.ParseLink(t, "https://vm.tiktok.com/ZMhijklmn/")
		require.Equal(t, link.Short, one.Kind)
		known := func() map[string]link.Link {
			t.Helper()
			got, err := db.ShortLinks(t.Context(), []link.Link{one, two, storetest.ParseLink(t, "https://vm.tiktok.com/ZMunknown/")})
			require.NoError(t, err)
			return got
		}
		require.Empty(t, known())
		require.NoError(t, db.SaveShortLinks(t.Context(), nil))
		require.NoError(t, db.SaveShortLinks(t.Context(), map[string]link.Link{one.Canonical: storetest.VideoLink(t, 1)}))
		db.Clock.Advance(24 * time.Hour)
		require.NoError(t, db.SaveShortLinks(t.Context(), map[string]link.Link{two.Canonical: storetest.VideoLink(t, 2)}))
		require.Equal(t, map[string]link.Link{one.Canonical: storetest.VideoLink(t, 1), two.Canonical: storetest.VideoLink(t, 2)}, known())
		db.Clock.Advance(29*24*time.Hour - time.Microsecond)
		require.Len(t, known(), 2)
		db.Clock.Advance(time.Microsecond)
		require.Equal(t, map[string]link.Link{two.Canonical: storetest.VideoLink(t, 2)}, known())
		require.NoError(t, db.SaveShortLinks(t.Context(), map[string]link.Link{one.Canonical: storetest.VideoLink(t, 3)}))
		require.Equal(t, storetest.VideoLink(t, 3), known()[one.Canonical], "an expired short link must be able to get a new target")

		none, err := db.ShortLinks(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, none)
	})
}
