package store_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

var bothScopes = []store.Scope{store.ScopeRead, store.ScopeWrite}

// newToken creates a token with the scopes read and write and returns the token and its secret.
func newToken(t *testing.T, db *storetest.DB, org uuid.UUID, validity time.Duration) (store.Token, string) {
	t.Helper()
	token, secret, err := db.CreateToken(t.Context(), org, "Tester", bothScopes, validity)
	require.NoError(t, err)
	return token, secret
}

func TestWellFormedToken_refusesMistypedTokens(t *testing.T) {
	t.Parallel()
	// The format of tokens must never change, because secret scanners recognise tokens by it.
	const example = "rt_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd4Q6C45"
	require.True(t, store.WellFormedToken(example))
	require.Len(t, example, 49)
	for i := range example {
		for _, c := range []byte{'0', 'Z', 'a', '_', ' ', 0, 0xff} {
			if changed := example[:i] + string(c) + example[i+1:]; changed != example {
				require.False(t, store.WellFormedToken(changed), changed)
			}
		}
		if i > 0 && example[i] != example[i-1] {
			swapped := example[:i-1] + example[i:i+1] + example[i-1:i] + example[i+1:]
			require.False(t, store.WellFormedToken(swapped), swapped)
		}
		require.False(t, store.WellFormedToken(example[:i]))
	}
	for _, bad := range []string{"", example + "0", " " + example, "Bearer " + example, strings.ToUpper(example)} {
		require.False(t, store.WellFormedToken(bad), bad)
	}
}

func TestAuthenticate_returnsTheOrganisationOfTheToken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org, err := db.CreateOrganisation(t.Context(), "Tester", store.TierBasic, store.SubscriptionNone)
		require.NoError(t, err)
		newToken(t, db, storetest.NewOrg(t, db).ID(), 0)
		token, secret, err := db.CreateToken(t.Context(), org.ID, " My script ", []store.Scope{store.ScopeRead}, time.Hour)
		require.NoError(t, err)
		now := store.InstantOf(db.Clock.Now())
		require.Equal(t, store.Token{ID: token.ID, OrganisationID: org.ID, Name: "My script", Scopes: []store.Scope{store.ScopeRead},
			CreatedAt: now, ExpiresAt: new(now.Add(time.Hour))}, token)
		require.Regexp(t, `^rt_[0-9A-Za-z]{46}$`, secret)
		require.True(t, store.WellFormedToken(secret))

		who, err := db.Authenticate(t.Context(), secret)
		require.NoError(t, err)
		require.Equal(t, store.Identity{Organisation: org, Token: token}, who)
		require.True(t, who.Token.HasScope(store.ScopeRead))
		require.False(t, who.Token.HasScope(store.ScopeWrite))

		require.NoError(t, db.SetTier(t.Context(), org.ID, store.TierPremium))
		who, err = db.Authenticate(t.Context(), secret)
		require.NoError(t, err)
		require.Equal(t, store.TierPremium, who.Organisation.Tier)
	})
}

func TestToken_isStoredOnlyAsAHash(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		_, secret := newToken(t, db, storetest.NewOrg(t, db).ID(), 0)
		hash := storetest.Column[[]byte](t, db, "SELECT hash FROM api_tokens")
		require.Len(t, hash, 1)
		require.Len(t, hash[0], 32)
		require.NotContains(t, string(hash[0]), secret)
		for _, given := range []string{string(hash[0]), hex.EncodeToString(hash[0])} {
			_, err := db.Authenticate(t.Context(), given)
			require.ErrorIs(t, err, store.ErrTokenUnknown, "the stored hash must not be a valid token")
		}
	})
}

func TestAuthenticate_refusesUnknownExpiredAndRevokedTokens(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		expiring, secret := newToken(t, db, o.ID(), time.Hour)
		revoked, other := newToken(t, db, o.ID(), time.Hour)
		auth := func(secret string) error {
			_, err := db.Authenticate(t.Context(), secret)
			return err
		}
		for _, unknown := range []string{"", "rt_", "rt_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd4Q6C45", secret + " ", strings.ToLower(secret)} {
			require.ErrorIs(t, auth(unknown), store.ErrTokenUnknown, unknown)
		}
		db.Clock.Advance(time.Hour - time.Microsecond)
		require.NoError(t, auth(secret))
		require.NoError(t, db.RevokeToken(t.Context(), revoked.ID))
		at := store.InstantOf(db.Clock.Now())
		require.ErrorIs(t, auth(other), store.ErrTokenRevoked, "a token must be refused right after its revocation")
		db.Clock.Advance(time.Microsecond)
		require.ErrorIs(t, auth(secret), store.ErrTokenExpired)
		require.NoError(t, db.RevokeToken(t.Context(), revoked.ID), "a second revocation must return no error")
		require.ErrorIs(t, auth(other), store.ErrTokenRevoked)
		require.ErrorIs(t, db.RevokeToken(t.Context(), store.NewID()), store.ErrNotFound)

		tokens, err := db.Tokens(t.Context(), o.ID())
		require.NoError(t, err)
		revoked.RevokedAt = &at
		require.Equal(t, []store.Token{expiring, revoked}, tokens, "the oldest token must come first, ended tokens must be included, and a second revocation must keep the time of the first")
	})
}

func TestSaveTokenUse_storesTheTimeOfTheLastUse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		token, _ := newToken(t, db, o.ID(), 0)
		newToken(t, db, storetest.NewOrg(t, db).ID(), 0)
		for range 2 {
			db.Clock.Advance(time.Minute)
			require.NoError(t, db.SaveTokenUse(t.Context(), token.ID, db.Clock.Now()))
			tokens, err := db.Tokens(t.Context(), o.ID())
			require.NoError(t, err)
			token.LastUsedAt = new(store.InstantOf(db.Clock.Now()))
			require.Equal(t, []store.Token{token}, tokens)
		}
		_, err := db.Tokens(t.Context(), store.NewID())
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestCreateToken_refusesInvalidArguments(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org := storetest.NewOrg(t, db).ID()
		for name, c := range map[string]struct {
			org      uuid.UUID
			name     string
			scopes   []store.Scope
			validity time.Duration
			because  string
		}{
			"no name":                  {org, " ", bothScopes, 0, "0 characters; it must have 1 to 100"},
			"a name of 101 characters": {org, strings.Repeat("ä", 101), bothScopes, 0, "101 characters"},
			"no scope":                 {org, "T", nil, 0, "a token needs at least one of the scopes read, write and admin"},
			"an unknown scope":         {org, "T", []store.Scope{store.ScopeRead, "owner"}, 0, `scope "owner" is not one of read, write, admin`},
			"an expiry in the past":    {org, "T", bothScopes, -time.Hour, "a token cannot be valid for -1h0m0s"},
			"an unknown organisation":  {uuid.UUID{1}, "T", bothScopes, 0, "no such organisation: 01000000-"},
		} {
			_, secret, err := db.CreateToken(t.Context(), c.org, c.name, c.scopes, c.validity)
			require.ErrorContains(t, err, c.because, name)
			require.Empty(t, secret)
		}
		require.Empty(t, storetest.Column[string](t, db, "SELECT name FROM api_tokens"))
		longest, _, err := db.CreateToken(t.Context(), org, strings.Repeat("ä", 100), []store.Scope{"write", "read", "write"}, 0)
		require.NoError(t, err)
		require.Equal(t, bothScopes, longest.Scopes, "each scope must be stored once")
	})
}

func TestParseScopes_acceptsACommaSeparatedList(t *testing.T) {
	t.Parallel()
	for given, want := range map[string][]store.Scope{
		"read": {store.ScopeRead}, " write , read,write": bothScopes,
	} {
		got, err := store.ParseScopes(given)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", ",", "read,", "READ", "read;write", "owner"} {
		_, err := store.ParseScopes(bad)
		require.ErrorContains(t, err, "is not one of read, write", bad)
	}
}

// A repeated request returns what is stored: the token and the webhook of the first attempt, with a new secret.
func TestRepeatedCreation_returnsTheStoredRecordWithANewSecret(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		org := storetest.NewOrg(t, db)
		token := store.NewToken{ID: uuid.New(), Name: "reports", Scopes: []store.Scope{store.ScopeRead}, Validity: 24 * time.Hour}
		first, secret, err := org.CreateToken(t.Context(), token)
		require.NoError(t, err)
		webhook := store.NewWebhook{ID: uuid.New(), URL: "https://hooks.example.com/", Secret: []byte("a")}
		made, err := org.CreateWebhook(t.Context(), webhook)
		require.NoError(t, err)
		db.Clock.Advance(time.Hour)
		again, newSecret, err := org.CreateToken(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.NotEqual(t, secret, newSecret)
		webhook.Secret = []byte("b")
		repeated, err := org.CreateWebhook(t.Context(), webhook)
		require.NoError(t, err)
		require.Equal(t, made.CreatedAt, repeated.CreatedAt)
		require.Equal(t, []byte("b"), repeated.Secret)
	})
}
