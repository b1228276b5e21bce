package server

import (
	"fmt"
	"time"

	"github.com/reeltally/reeltally/store"
)

// rateGroup is the value of x-rate-group of an operation: the operations of a group have the same rate limit.
type rateGroup string

const (
	groupRead         rateGroup = "read"
	groupWrite        rateGroup = "write"
	groupAuthenticate rateGroup = "authenticate"
)

// rateGroups lists the rate groups in the order in which the operation authenticate returns them.
var rateGroups = [...]rateGroup{groupAuthenticate, groupRead, groupWrite}

// rateWindow is the length of the window in which requests are counted for a rate limit.
const rateWindow = time.Minute

// tierFacts are the limits and rights of a tier.
type tierFacts struct {
	limits      map[rateGroup]int64 // maximum number of requests in a minute, for each operation of the group
	masked      bool                // operations with x-tier-masked return only one item, without metrics
	historyDays int                 // maximum age of the start of a history, in days
}

// tiers contains the limits and rights of each tier (spec.md 4 and 8). No other code in this package depends on the name of a tier.
var tiers = map[store.Tier]tierFacts{
	store.TierLimited: {limits: map[rateGroup]int64{groupRead: 5, groupWrite: 5, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierBasic:   {limits: map[rateGroup]int64{groupRead: 15, groupWrite: 15, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierPremium: {limits: map[rateGroup]int64{groupRead: 30, groupWrite: 120, groupAuthenticate: 120}, masked: false, historyDays: 730},
}

// factsOfTier returns the limits and rights of a tier. It fails if the tier is unknown.
func factsOfTier(t store.Tier) (tierFacts, error) {
	f, ok := tiers[t]
	if !ok {
		return tierFacts{}, fmt.Errorf("tier %q is unknown", t)
	}
	return f, nil
}
