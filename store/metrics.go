package store

import (
	"github.com/reeltally/reeltally/store/internal/db"
)

// Counts are the five counts of a point; nil where the source does not give one.
type Counts struct {
	Views     *int64
	Likes     *int64
	Comments  *int64
	Shares    *int64
	Bookmarks *int64
}

// CountColumns are the counts as columns, in that order.
var CountColumns = []string{"views", "likes", "comments", "shares", "bookmarks"}

// Engagement is likes + comments + bookmarks + shares, of those that are known; nil when none is.
func (c Counts) Engagement() *int64 {
	var sum int64
	known := false
	for _, n := range []*int64{c.Likes, c.Comments, c.Bookmarks, c.Shares} {
		if n != nil {
			sum, known = sum+*n, true
		}
	}
	if !known {
		return nil
	}
	return &sum
}

// fellFrom says whether any count is lower than it was, of those that are known both times.
func (c Counts) fellFrom(before Counts) bool {
	fell := func(now, then *int64) bool { return now != nil && then != nil && *now < *then }
	return fell(c.Views, before.Views) || fell(c.Likes, before.Likes) || fell(c.Comments, before.Comments) ||
		fell(c.Shares, before.Shares) || fell(c.Bookmarks, before.Bookmarks)
}

// Update takes over the counts that are given.
func (c *Counts) Update(from Counts) {
	db.AssignPointer(&c.Views, from.Views)
	db.AssignPointer(&c.Likes, from.Likes)
	db.AssignPointer(&c.Comments, from.Comments)
	db.AssignPointer(&c.Shares, from.Shares)
	db.AssignPointer(&c.Bookmarks, from.Bookmarks)
}

func (c *Counts) All() [5]*int64 {
	return [5]*int64{c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks}
}

func (c Counts) Equal(o Counts) bool {
	same := func(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	return same(c.Views, o.Views) && same(c.Likes, o.Likes) && same(c.Comments, o.Comments) && same(c.Shares, o.Shares) && same(c.Bookmarks, o.Bookmarks)
}

// Holds says whether all counts that o knows are these.
func (c Counts) Holds(o Counts) bool {
	known := c
	known.Update(o)
	return c.Equal(known)
}
