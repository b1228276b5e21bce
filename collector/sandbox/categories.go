package sandbox

import (
	"maps"
	"slices"

	"github.com/reeltally/reeltally/store/link"
)

// Category is the one thing that is special about a video of the world.
type Category string

// The categories of videos. World.Find gives an id of each.
const (
	Normal        Category = "normal"
	Viral         Category = "viral"          // late, steep growth far above the account's median
	HiddenLikes   Category = "hidden_likes"   // the creator hides the likes (not on TikTok, which has no such switch)
	CommentsOff   Category = "comments_off"   // no comments allowed
	ShopAd        Category = "shop_ad"        // TikTok: a shop ad with a product
	AgeRestricted Category = "age_restricted" // age gate
	TurnsPrivate  Category = "private"        // public until VideoTruth.TurnsAt
	TurnsDeleted  Category = "deleted"        // public until VideoTruth.TurnsAt
	Falling       Category = "falling"        // every count falls once, at VideoTruth.TurnsAt, and grows on from there
	Live          Category = "live"           // YouTube: a live broadcast, duration P0D
	Photo         Category = "photo"          // TikTok: a slideshow, duration 0
)

// AccountCategory is the one thing that is special about an account of the world.
type AccountCategory string

// The categories of accounts. World.FindAccount gives a handle of each.
const (
	AccountNormal    AccountCategory = "normal"
	AccountPrivate   AccountCategory = "private"          // and all its videos with it (not on YouTube)
	AccountGone      AccountCategory = "gone"             // terminated, and all its videos with it
	AccountEmpty     AccountCategory = "empty"            // lists no video
	FollowersHidden  AccountCategory = "hidden_followers" // YouTube: hiddenSubscriberCount
	AccountNoHandle  AccountCategory = "no_handle"        // YouTube: an old channel without customUrl
	categoryPerMille                 = 1000
)

// share is how many in a thousand have a category.
type share[C ~string] struct {
	category C
	perMille int
}

// shares lists the special videos of a platform. Less than three in a hundred lack a count or are not to be seen, so that
// nearly every real link that somebody pastes is an ordinary public video.
func shares(p link.Platform) []share[Category] {
	list := []share[Category]{
		{Viral, 20}, {CommentsOff, 6}, {AgeRestricted, 3}, {TurnsPrivate, 3}, {TurnsDeleted, 4}, {Falling, 3},
	}
	switch p {
	case link.TikTok:
		list = append(list, share[Category]{ShopAd, 10}, share[Category]{Photo, 4})
	case link.YouTube:
		list = append(list, share[Category]{HiddenLikes, 6}, share[Category]{Live, 2})
	default:
		list = append(list, share[Category]{HiddenLikes, 6})
	}
	return list
}

func accountShares(p link.Platform) []share[AccountCategory] {
	list := []share[AccountCategory]{{AccountGone, 2}, {AccountEmpty, 3}}
	if p == link.YouTube {
		return append(list, share[AccountCategory]{FollowersHidden, 5}, share[AccountCategory]{AccountNoHandle, 5})
	}
	return append(list, share[AccountCategory]{AccountPrivate, 3})
}

// roll turns one roll into a category; what is left of the thousand is rest.
func roll[C ~string](list []share[C], d dice, rest C) C {
	at := d.below(categoryPerMille)
	for _, s := range list {
		if at < s.perMille {
			return s.category
		}
		at -= s.perMille
	}
	return rest
}

// Categories lists the categories that a platform's videos can have, Normal first.
func Categories(p link.Platform) []Category { return names(shares(p), Normal) }

// AccountCategories lists the categories that a platform's accounts can have, AccountNormal first.
func AccountCategories(p link.Platform) []AccountCategory {
	return names(accountShares(p), AccountNormal)
}

func names[C ~string](list []share[C], rest C) []C {
	set := map[C]bool{}
	for _, s := range list {
		set[s.category] = true
	}
	return append([]C{rest}, slices.Sorted(maps.Keys(set))...)
}
