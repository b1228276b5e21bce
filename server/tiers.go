package server

import (
	"fmt"
	"time"

	"github.com/reeltally/reeltally/store"
)

// rateGroup is a group of operations with the same rate limit. An operation declares its rate group as x-rate-group in the OpenAPI
// contract.
type rateGroup string

const (
	groupRead         rateGroup = "read"
	groupWrite        rateGroup = "write"
	groupAuthenticate rateGroup = "authenticate"
)

// rateGroups lists the rate groups in the order in which GET /authenticate returns them.
var rateGroups = [...]rateGroup{groupAuthenticate, groupRead, groupWrite}

// rateWindow is the length of the window of time in which requests are counted for a rate limit.
const rateWindow = time.Minute

// tierFacts are the rate limits and rights of the organisations in a tier.
type tierFacts struct {
	limits      map[rateGroup]int64 // maximum number of requests in a minute to each operation of a rate group
	masked      bool                // true if operations with x-tier-masked return only one item and no metrics
	historyDays int                 // maximum age of the start of a history, in days
}

// tiers contains the rate limits and rights of each tier. No other code in this package depends on the name of a tier.
var tiers = map[store.Tier]tierFacts{
	store.TierLimited: {limits: map[rateGroup]int64{groupRead: 5, groupWrite: 5, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierBasic:   {limits: map[rateGroup]int64{groupRead: 15, groupWrite: 15, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierPremium: {limits: map[rateGroup]int64{groupRead: 30, groupWrite: 120, groupAuthenticate: 120}, masked: false, historyDays: 730},
}

// factsOfTier returns the rate limits and rights of a tier. It fails if the tier is unknown.
func factsOfTier(t store.Tier) (tierFacts, error) {
	f, ok := tiers[t]
	if !ok {
		return tierFacts{}, fmt.Errorf("the tier %q of the organisation is unknown", t)
	}
	return f, nil
}
