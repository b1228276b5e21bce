package backfill_test

import (
	"math"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// findMixedAccounts adds accounts to s.mixed: those of videos that were stopped, tracked again, or moved by the last operation.
func (s *operations) findMixedAccounts(videos []store.Video) {
	last := s.lastVideos
	s.lastVideos = map[uuid.UUID]store.Video{}
	for _, v := range videos {
		s.lastVideos[v.ID] = v
		was, known := last[v.ID]
		if known && was.Removed == v.Removed && reflect.DeepEqual(was.LinkedAccountID, v.LinkedAccountID) || !known && !v.Removed {
			continue
		}
		for _, id := range []*uuid.UUID{was.LinkedAccountID, v.LinkedAccountID} {
			if id != nil && (was.LinkedAccountID != nil || was.Latest.Views != nil || v.Removed) {
				s.mixed[*id] = true
			}
		}
	}
}

// checkGains compares the gained views of an account with its history. Unless videos left the account, or came with views, it also compares them with the
// points of the account's videos.
func (s *operations) checkGains(a *store.Account, history []store.AccountPoint, own []store.Video) {
	const unknown = math.MinInt64
	gains := storetest.Column[int64](s.t, s.db, "SELECT COALESCE(views_gained, ?) FROM account_days WHERE organisation_id = ? AND account_id = ? ORDER BY day DESC", int64(unknown), s.o.ID(), a.ID)
	s.requireEqual(len(history), len(gains), "days of the account")
	present := storetest.Column[int64](s.t, s.db, "SELECT COALESCE(views_gained, ?) FROM accounts WHERE organisation_id = ? AND id = ?", int64(unknown), s.o.ID(), a.ID)
	if len(history) == 0 {
		s.requireEqual([]int64{unknown}, present, "gained views of an account without history")
		s.requireEqual((*int64)(nil), a.ViewsGained7d, "gain of an account without history")
		return
	}
	s.requireEqual(gains[:1], present, "present sum of gained views")
	var want *int64
	for n, p := range history {
		if p.Day <= history[0].Day-7 && gains[n] != unknown {
			want = new(gains[0] - gains[n])
			break
		}
	}
	s.requireEqual(want, a.ViewsGained7d, "views gained in 7 days")
	if s.rollUp || s.inexact || s.mixed[a.ID] {
		return
	}
	gainedUntil := make([]int64, len(history))
	for n := range gainedUntil {
		gainedUntil[n] = unknown
	}
	for i := range own {
		points, err := s.o.History(s.t.Context(), store.Ref{ID: own[i].ID}, s.begin-200, storetest.Today(s.db))
		require.NoError(s.rt, err)
		points = slices.DeleteFunc(points, func(p store.Point) bool { return p.Quality == store.QualityInterpolated || p.Views == nil })
		for n, p := range history {
			if at := slices.IndexFunc(points, func(of store.Point) bool { return of.Day <= p.Day }); at >= 0 {
				if gainedUntil[n] == unknown {
					gainedUntil[n] = 0
				}
				gainedUntil[n] += *points[at].Views - *points[len(points)-1].Views
			}
		}
	}
	if s.late {
		gains, gainedUntil = gains[:1], gainedUntil[:1] // the points of late answers have an earlier day than the rows of the account
	}
	s.requireEqual(gainedUntil, gains, "gained views on each day")
}
