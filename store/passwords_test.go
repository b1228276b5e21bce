package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
)

func TestPasswordMatches_acceptsOnlyThePasswordOfTheHash(t *testing.T) {
	t.Parallel()
	hash, err := store.HashPassword(t.Context(), "pässword 🐶")
	require.NoError(t, err)
	require.Regexp(t, `^\$argon2id\$v=19\$m=19456,t=2,p=1\$`, hash, "the hash must have the parameters that OWASP recommends")
	again, err := store.HashPassword(t.Context(), "pässword 🐶")
	require.NoError(t, err)
	require.NotEqual(t, hash, again, "each hash must have its own salt")
	for password, want := range map[string]bool{"pässword 🐶": true, "password": false, "": false, "pässword 🐶 ": false} {
		ok, err := store.PasswordMatches(t.Context(), password, hash)
		require.NoError(t, err)
		require.Equal(t, want, ok, password)
	}
	_, err = store.PasswordMatches(t.Context(), "x", "no hash")
	require.Error(t, err)
}

func TestHashPassword_returnsAnErrorIfTheContextIsCancelled(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // call both functions many times: a function that checks the context too late returns context.Canceled only in some calls
		_, err := store.HashPassword(gone, "password")
		require.ErrorIs(t, err, context.Canceled)
		_, err = store.PasswordMatches(gone, "password", "hash")
		require.ErrorIs(t, err, context.Canceled)
	}
}
