package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// tierRules are the rate limits and rights of the organisations in a tier.
type tierRules struct {
	limits      map[rateGroup]int64 // maximum number of requests in a minute to each operation of a rate group
	masked      bool                // true if the tier hides metrics: they are null in responses, and most lists contain only one item
	historyDays int                 // how many days before today a history may start
}

// tierTable contains the rules of each tier.
type tierTable map[store.Tier]tierRules

// tiers contains the default rate limits and the rights of each tier. Options.TierLimits changes the rate limits. No other code in this
// package depends on the name of a tier.
var tiers = tierTable{
	store.TierLimited: {limits: map[rateGroup]int64{groupRead: 5, groupWrite: 5, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierBasic:   {limits: map[rateGroup]int64{groupRead: 15, groupWrite: 15, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierPremium: {limits: map[rateGroup]int64{groupRead: 30, groupWrite: 120, groupAuthenticate: 120}, masked: false, historyDays: 730},
}

// maxTierLimit is the largest rate limit that TierLimits.Check allows.
const maxTierLimit = 1_000_000

// TierLimits replace the default rate limits of tiers. A key is TIER.GROUP, such as basic.read. A
// value is the maximum number of requests per minute to one operation.
type TierLimits map[string]int64

// Check returns an error if a key contains an unknown tier or an unknown rate group, or if a limit is below 1 or above a million.
func (l TierLimits) Check() error {
	_, err := l.mergeWithDefaults()
	return err
}

// mergeWithDefaults returns a copy of the map `tiers` in which the rate limits of l replace the
// defaults. It fails in the cases that Check describes.
func (l TierLimits) mergeWithDefaults() (tierTable, error) {
	out := maps.Clone(tiers)
	for tier, rules := range out {
		rules.limits = maps.Clone(rules.limits)
		out[tier] = rules
	}
	for _, key := range slices.Sorted(maps.Keys(l)) { // the keys are sorted, so that the first error is always the same
		limit := l[key]
		tier, group, _ := strings.Cut(key, ".")
		limits := out[store.Tier(tier)].limits
		if _, ok := limits[rateGroup(group)]; !ok {
			return nil, fmt.Errorf("%q is not a rate limit: write TIER.GROUP; TIER is limited, basic or premium, and GROUP is authenticate, read or write", key)
		}
		if limit < 1 || limit > maxTierLimit {
			return nil, fmt.Errorf("%s is %d; it must be from 1 to %d", key, limit, maxTierLimit)
		}
		limits[rateGroup(group)] = limit
	}
	return out, nil
}

// rulesOf returns the rate limits and rights of a tier. It fails if the tier is unknown.
func (tiers tierTable) rulesOf(t store.Tier) (tierRules, error) {
	f, ok := tiers[t]
	if !ok {
		return tierRules{}, fmt.Errorf("the tier %q of the organisation is unknown", t)
	}
	return f, nil
}
