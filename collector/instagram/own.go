package instagram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

// ownAccount caches the profile of the operator's account, to which the access token belongs. The profile is requested once a day, because
// its handle can change.
type ownAccount struct {
	id   string
	lock chan struct{} // a channel that is used as a mutex for the fields below; unlike a sync.Mutex, it lets a waiting goroutine stop when its context is cancelled

	profile  profile
	at       time.Time
	err      error        // error of the last request for the profile
	attempts atomic.Int64 // number of requests for the profile; can be read without the lock
}

// ownProfile returns the profile of the operator's account, which is cached for a day. Concurrent
// calls wait for one request and share its failure.
func (s *Source) ownProfile(ctx context.Context, budget *source.CallBudget) (profile, error) {
	attempts := s.own.attempts.Load()
	select {
	case s.own.lock <- struct{}{}:
		defer func() { <-s.own.lock }()
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return profile{}, fmt.Errorf("the call was cancelled: %w", context.Canceled)
		}
		return profile{}, &source.Failure{Class: source.Temporary, Cause: fetch.ErrTimeout, Detail: "no answer about the configured account before the caller's deadline"}
	}
	now := s.now()
	if s.own.profile.Username != nil && now.Sub(s.own.at) < ownProfileTTL {
		return s.own.profile, nil
	}
	// If another call failed to request the profile while this call waited for the lock, return the same
	// failure. A new request could also run into the timeout.
	if failure := (*source.Failure)(nil); s.own.attempts.Load() > attempts && errors.As(s.own.err, &failure) {
		return profile{}, s.own.err
	}
	self, err := s.fetchOwnProfile(ctx, budget)
	s.own.err = err
	s.own.attempts.Add(1)
	if err != nil {
		return profile{}, err
	}
	s.own.profile, s.own.at = self, now
	return self, nil
}

// fetchOwnProfile requests the id, the handle and the name of the operator's account.
func (s *Source) fetchOwnProfile(ctx context.Context, budget *source.CallBudget) (profile, error) {
	res, err := s.Client.Get(ctx, budget, s.own.id, ownAccountErrors, "fields", "id,username,name")
	if err != nil {
		return profile{}, err
	}
	var self profile
	if json.Unmarshal(res.Body, &self) != nil || fetch.ParseHandle(self.Username) == nil {
		return profile{}, graph.ErrFormat
	}
	return self, nil
}
