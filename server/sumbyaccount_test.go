package server

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// TestSumByAccount_doesNotMixAccountsWithTheSameName sums the gains of accounts with equal usernames. If an account is known only by its id, its username
// is empty. A username can also move from one account to another.
func TestSumByAccount_doesNotMixAccountsWithTheSameName(t *testing.T) {
	t.Parallel()
	first, second := uuid.New(), uuid.New()
	video := func(account *uuid.UUID, username string, gained *int64) store.CollectionVideo {
		return store.CollectionVideo{EndViews: gained, Gained: gained, Details: store.VideoDetails{Platform: link.Facebook, AccountID: account, Username: username}}
	}
	got := sumByAccount([]store.CollectionVideo{
		video(&first, "", new(int64(5))), video(&second, "", new(int64(10))), video(&first, "", new(int64(2))),
		video(nil, "mira", new(int64(1))), video(nil, "", nil), video(nil, "mira", nil),
	})
	require.Equal(t, []api.ReportAccount{
		{AccountID: &second, Platform: api.PlatformFacebook, Videos: 1, ViewsAtEnd: new(int64(10)), ViewsGained: new(int64(10))},
		{AccountID: &first, Platform: api.PlatformFacebook, Videos: 2, ViewsAtEnd: new(int64(7)), ViewsGained: new(int64(7))},
		{Platform: api.PlatformFacebook, Username: new("mira"), Videos: 2, ViewsAtEnd: new(int64(1)), ViewsGained: new(int64(1)), UnknownGains: 1, UnknownViews: 1},
		{Platform: api.PlatformFacebook, Videos: 1, UnknownGains: 1, UnknownViews: 1},
	}, got)
}
