package store_test

import (
	"context"
	"encoding/base64"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestSession_hasTheRightsOfItsTokenUntilTheSessionEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx := t.Context()
		o := storetest.NewOrg(t, db)
		token, _ := newToken(t, db, o.ID(), 0)
		secret, err := db.CreateSession(ctx, token.ID)
		require.NoError(t, err)
		random, err := base64.RawURLEncoding.DecodeString(secret)
		require.NoError(t, err)
		require.Len(t, random, 32, "a secret must have 256 random bits")

		id, err := db.AuthenticateSession(ctx, secret)
		require.NoError(t, err)
		require.Equal(t, token.ID, id.Token.ID)
		require.Equal(t, o.ID(), id.Organisation.ID)
		for _, wrong := range []string{"", "x", secret[1:], secret + "A", base64.RawURLEncoding.EncodeToString(make([]byte, 32))} {
			_, err = db.AuthenticateSession(ctx, wrong)
			require.ErrorIs(t, err, store.ErrTokenUnknown, wrong)
		}
		require.NotContains(t, storetest.Column[string](t, db, "SELECT CAST(hash AS text) FROM sessions"), secret, "the secret itself must not be stored")

		require.NoError(t, db.EndSession(ctx, secret))
		_, err = db.AuthenticateSession(ctx, secret)
		require.ErrorIs(t, err, store.ErrTokenUnknown)
	})
}

func TestSession_endsAfterSessionLifeOrWhenItsTokenEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx := t.Context()
		o := storetest.NewOrg(t, db)
		lasting, _ := newToken(t, db, o.ID(), 0)
		short, _ := newToken(t, db, o.ID(), time.Hour)
		revoked, _ := newToken(t, db, o.ID(), 0)
		secrets := map[string]string{}
		for name, token := range map[string]store.Token{"lasting": lasting, "short": short, "revoked": revoked} {
			secret, err := db.CreateSession(ctx, token.ID)
			require.NoError(t, err)
			secrets[name] = secret
		}
		require.NoError(t, db.RevokeToken(ctx, revoked.ID))
		_, err := db.AuthenticateSession(ctx, secrets["revoked"])
		require.ErrorIs(t, err, store.ErrTokenRevoked)

		db.Clock.Advance(time.Hour)
		_, err = db.AuthenticateSession(ctx, secrets["short"])
		require.ErrorIs(t, err, store.ErrTokenExpired)

		db.Clock.Advance(store.SessionLife - time.Hour - time.Second)
		_, err = db.AuthenticateSession(ctx, secrets["lasting"])
		require.NoError(t, err)
		db.Clock.Advance(time.Second)
		_, err = db.AuthenticateSession(ctx, secrets["lasting"])
		require.ErrorIs(t, err, store.ErrTokenExpired)
	})
}

func TestLoginLink_canBeUsedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx := t.Context()
		o := storetest.NewOrg(t, db)
		token, _ := newToken(t, db, o.ID(), 0)
		link, err := db.CreateLoginLink(ctx, token.ID)
		require.NoError(t, err)
		for range 2 { // reading the link does not use it up
			id, err := db.LoginLink(ctx, link)
			require.NoError(t, err)
			require.Equal(t, o.ID(), id.Organisation.ID)
		}
		_, err = db.AuthenticateSession(ctx, link)
		require.ErrorIs(t, err, store.ErrTokenUnknown, "a login link must not work as a session")

		sessions := make([]string, 4)
		var wait sync.WaitGroup
		for n := range sessions {
			wait.Go(func() { sessions[n], _ = db.UseLoginLink(context.WithoutCancel(ctx), link) })
		}
		wait.Wait()
		var used []string
		for _, s := range sessions {
			if s != "" {
				used = append(used, s)
			}
		}
		require.Len(t, used, 1)
		id, err := db.AuthenticateSession(ctx, used[0])
		require.NoError(t, err)
		require.Equal(t, token.ID, id.Token.ID)
		_, err = db.UseLoginLink(ctx, link)
		require.ErrorIs(t, err, store.ErrLoginLink)
	})
}

func TestLoginLink_cannotBeUsedAfterHalfAnHourOrAfterItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		ctx := t.Context()
		o := storetest.NewOrg(t, db)
		token, _ := newToken(t, db, o.ID(), 0)
		old, err := db.CreateLoginLink(ctx, token.ID)
		require.NoError(t, err)
		db.Clock.Advance(30 * time.Minute)
		_, err = db.UseLoginLink(ctx, old)
		require.ErrorIs(t, err, store.ErrLoginLink)

		link, err := db.CreateLoginLink(ctx, token.ID)
		require.NoError(t, err)
		require.NoError(t, db.RevokeToken(ctx, token.ID))
		_, err = db.UseLoginLink(ctx, link)
		require.ErrorIs(t, err, store.ErrLoginLink)
	})
}
