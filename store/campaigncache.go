package store

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxCachedCampaigns is the maximum number of campaigns in a campaignCache.
	maxCachedCampaigns = 1000
	// maxCachedCampaignRows is the maximum number of videos and days in a campaignCache, added up over all campaigns. It limits the memory to about
	// 10 megabytes.
	maxCachedCampaignRows = 30_000
)

// campaignKey identifies a Campaign in a campaignCache.
type campaignKey struct {
	org     uuid.UUID
	version int64 // version of the organisation's data
	query   CampaignQuery
}

// campaignCache keeps campaigns without stored points. So the statistics and the history of a collection are computed only once for a page. It is
// safe for concurrent use. Callers must not change the campaigns.
type campaignCache struct {
	mu    sync.Mutex
	byKey *simplelru.LRU[campaignKey, Campaign] // the least recently used campaign is dropped first
	rows  int                                   // number of videos and days of all campaigns in byKey
}

func newCampaignCache() (*campaignCache, error) {
	c := &campaignCache{}
	var err error
	c.byKey, err = simplelru.NewLRU(maxCachedCampaigns, func(_ campaignKey, dropped Campaign) { c.rows -= dropped.rows() })
	return c, err
}

// rows returns the number of videos and days.
func (c Campaign) rows() int { return len(c.Videos) + len(c.Days) }

// get returns a campaign. It returns false if the cache does not have the campaign.
func (c *campaignCache) get(key campaignKey) (Campaign, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey.Get(key)
}

// put stores a campaign. The caller must have read key.version before the campaign.
func (c *campaignCache) put(key campaignKey, campaign Campaign) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey.Remove(key)
	c.byKey.Add(key, campaign)
	for c.rows += campaign.rows(); c.rows > maxCachedCampaignRows; {
		c.byKey.RemoveOldest()
	}
}

// Campaign adds up the counts of a collection's videos on each day from q.From to q.To, but not
// after today. It can return ErrNotFound, *TooManyMembersError, *TooManyVideosError, *TooManyDaysError
// and *TooManyPointsError. The caller must not change the result, because
// the store keeps it for further calls, except if q.Points is true.
func (o *Org) Campaign(ctx context.Context, q CampaignQuery) (Campaign, error) {
	q.To = min(q.To, o.s.db.Now().Day())
	if q.Points {
		return o.readCampaign(ctx, q)
	}
	version, err := o.version(ctx)
	if err != nil {
		return Campaign{}, err
	}
	key := campaignKey{o.id, version.Version, q}
	if c, ok := o.s.campaigns.get(key); ok {
		return c, nil
	}
	c, err := o.readCampaign(ctx, q)
	if err == nil {
		o.s.campaigns.put(key, c)
	}
	return c, err
}
