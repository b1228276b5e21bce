package sandbox

import (
	"maps"
	"slices"

	"github.com/reeltally/reeltally/store/link"
)

// Category is the special property of a video, such as being private. Most videos have the category Normal.
type Category string

// These are the categories of videos. World.Find returns a video of a given category.
const (
	Normal         Category = "normal"
	Viral          Category = "viral"          // views grow late and steeply, far above the account's other videos
	HiddenLikes    Category = "hidden_likes"   // the creator hides the number of likes; on TikTok, no video has this category
	CommentsOff    Category = "comments_off"   // the creator has turned comments off
	ShopAd         Category = "shop_ad"        // TikTok: a shop ad with a product
	AgeRestricted  Category = "age_restricted" // only adults can see the video
	BecomesPrivate Category = "private"        // the video is public at first, and becomes private at the time VideoTruth.ChangesAt
	BecomesDeleted Category = "deleted"        // the video is public at first, and is deleted at the time VideoTruth.ChangesAt
	Falling        Category = "falling"        // every count falls once, at the time VideoTruth.ChangesAt, and then grows again
	Live           Category = "live"           // YouTube: a live broadcast, with duration P0D
	Photo          Category = "photo"          // TikTok: a slideshow, with duration 0
)

// AccountCategory is the special property of an account, such as having no videos. Most accounts have the category AccountNormal.
type AccountCategory string

// These are the categories of accounts. World.FindAccount returns an account of a given category.
const (
	AccountNormal   AccountCategory = "normal"
	AccountPrivate  AccountCategory = "private"          // the account and all its videos are private; on YouTube, no account has this category
	AccountGone     AccountCategory = "gone"             // the account and all its videos are deleted
	AccountEmpty    AccountCategory = "empty"            // the account has no videos
	FollowersHidden AccountCategory = "hidden_followers" // YouTube: the number of subscribers is hidden (hiddenSubscriberCount)
	AccountNoHandle AccountCategory = "no_handle"        // YouTube: an old channel without a handle (customUrl)
)

// categoryPerMille is the number of videos, accounts or short links to which frequency.perMille refers.
const categoryPerMille = 1000

// frequency has a category, and how many of a thousand videos, accounts or short links belong to it.
type frequency[C ~string] struct {
	category C
	perMille int
}

// videoCategoryFrequencies returns how many of a thousand videos have each category except Normal. Most videos
// are Normal, so that nearly every link that a person tries leads to a public video.
func videoCategoryFrequencies(p link.Platform) []frequency[Category] {
	list := []frequency[Category]{
		{Viral, 20}, {CommentsOff, 6}, {AgeRestricted, 3}, {BecomesPrivate, 3}, {BecomesDeleted, 4}, {Falling, 3},
	}
	switch p {
	case link.TikTok:
		list = append(list, frequency[Category]{ShopAd, 10}, frequency[Category]{Photo, 4})
	case link.YouTube:
		list = append(list, frequency[Category]{HiddenLikes, 6}, frequency[Category]{Live, 2})
	default:
		list = append(list, frequency[Category]{HiddenLikes, 6})
	}
	return list
}

// accountCategoryFrequencies returns how many of a thousand accounts have each category. All remaining accounts are AccountNormal.
func accountCategoryFrequencies(p link.Platform) []frequency[AccountCategory] {
	list := []frequency[AccountCategory]{{AccountGone, 2}, {AccountEmpty, 3}}
	if p == link.YouTube {
		return append(list, frequency[AccountCategory]{FollowersHidden, 5}, frequency[AccountCategory]{AccountNoHandle, 5})
	}
	return append(list, frequency[AccountCategory]{AccountPrivate, 3})
}

// pickCategory returns a random category. Each listed category has its own probability, perMille/1000. The normal category has the
// remaining probability.
func pickCategory[C ~string](list []frequency[C], d rng, normal C) C {
	at := d.intBelow(categoryPerMille)
	for _, s := range list {
		if at < s.perMille {
			return s.category
		}
		at -= s.perMille
	}
	return normal
}

// Categories returns the categories of videos on a platform, Normal first.
func Categories(p link.Platform) []Category {
	return categoryNames(videoCategoryFrequencies(p), Normal)
}

// AccountCategories returns the categories of accounts on a platform, AccountNormal first.
func AccountCategories(p link.Platform) []AccountCategory {
	return categoryNames(accountCategoryFrequencies(p), AccountNormal)
}

// categoryNames returns the names of categories without duplicates: first the normal category, and then the others, sorted by name.
func categoryNames[C ~string](list []frequency[C], normal C) []C {
	set := map[C]bool{}
	for _, s := range list {
		set[s.category] = true
	}
	return append([]C{normal}, slices.Sorted(maps.Keys(set))...)
}
