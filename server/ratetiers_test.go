package server_test

import "github.com/reeltally/reeltally/store"

type tierLimits struct{ read, write, authenticate int64 }

var limitsOfTiers = map[store.Tier]tierLimits{
	store.TierLimited: {5, 5, 60},
	store.TierBasic:   {15, 15, 60},
	store.TierPremium: {30, 120, 120},
}
