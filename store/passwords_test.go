package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

func TestPassword_matchesItsHashAlone(t *testing.T) {
	t.Parallel()
	hash, err := store.HashPassword(t.Context(), "pässword 🐶")
	require.NoError(t, err)
	require.Regexp(t, `^\$argon2id\$v=19\$m=19456,t=2,p=1\$`, hash, "the cost that OWASP asks for")
	again, err := store.HashPassword(t.Context(), "pässword 🐶")
	require.NoError(t, err)
	require.NotEqual(t, hash, again, "each has a salt of its own")
	for given, want := range map[string]bool{"pässword 🐶": true, "password": false, "": false, "pässword 🐶 ": false} {
		ok, err := store.PasswordMatches(t.Context(), given, hash)
		require.NoError(t, err)
		require.Equal(t, want, ok, given)
	}
	_, err = store.PasswordMatches(t.Context(), "x", "no hash")
	require.Error(t, err)
}

func TestPassword_isNotHashedForACallerWhoHasGone(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a place is free, and must not be taken by chance
		_, err := store.HashPassword(gone, "password")
		require.ErrorIs(t, err, context.Canceled)
		_, err = store.PasswordMatches(gone, "password", "hash")
		require.ErrorIs(t, err, context.Canceled)
	}
}
