package server

import (
	"fmt"
	"time"

	"github.com/reeltally/reeltally/store"
)

// rateGroup is the x-rate-group of an operation.
type rateGroup string

const (
	groupRead         rateGroup = "read"
	groupWrite        rateGroup = "write"
	groupAuthenticate rateGroup = "authenticate"
)

// rateGroups lists the groups in the order in which callers are told of them.
var rateGroups = [...]rateGroup{groupAuthenticate, groupRead, groupWrite}

// rateWindow is the window that limits count in.
const rateWindow = time.Minute

// tierFacts is everything that depends on a tier.
type tierFacts struct {
	limits      map[rateGroup]int64 // requests in a window, for each operation of the group
	masked      bool                // x-tier-masked operations give one result without metrics
	historyDays int                 // how old the start of a history may be
}

// tiers is the only place where a tier's name decides anything (spec.md 4 and 8).
var tiers = map[store.Tier]tierFacts{
	store.TierLimited: {limits: map[rateGroup]int64{groupRead: 5, groupWrite: 5, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierBasic:   {limits: map[rateGroup]int64{groupRead: 15, groupWrite: 15, groupAuthenticate: 60}, masked: true, historyDays: 90},
	store.TierPremium: {limits: map[rateGroup]int64{groupRead: 30, groupWrite: 120, groupAuthenticate: 120}, masked: false, historyDays: 730},
}

func factsOf(t store.Tier) (tierFacts, error) {
	f, ok := tiers[t]
	if !ok {
		return tierFacts{}, fmt.Errorf("tier %q has no facts", t)
	}
	return f, nil
}
