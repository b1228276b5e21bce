package server

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestSlots_limitConcurrentShortLinkRequestsPerOrganisationAndInTotal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(maxResolvesPerOrganisation, maxResolves)
		ctx, cancel := context.WithCancel(t.Context())
		acquired := make(chan uuid.UUID, 1000)
		done := make(chan struct{})
		acquireSlots := func(organisation uuid.UUID, links int) {
			for range links {
				go func() {
					release, err := slots.acquire(ctx, organisation)
					if err != nil {
						return
					}
					acquired <- organisation
					<-done
					release()
				}()
			}
			synctest.Wait()
		}
		count := func() map[uuid.UUID]int {
			counts := map[uuid.UUID]int{}
			for len(acquired) > 0 {
				counts[<-acquired]++
			}
			return counts
		}
		organisations := make([]uuid.UUID, 6)
		for i := range organisations {
			organisations[i] = uuid.New()
		}
		acquireSlots(organisations[0], 500)
		require.Equal(t, map[uuid.UUID]int{organisations[0]: maxResolvesPerOrganisation}, count())
		acquireSlots(organisations[1], 1)
		require.Equal(t, map[uuid.UUID]int{organisations[1]: 1}, count(), "the limit of one organisation must not delay another organisation")
		for _, o := range organisations[2:] {
			acquireSlots(o, 100)
		}
		require.Len(t, slots.total, maxResolves)

		cancel() // cancelling makes slots.acquire return an error to each goroutine that waits for a slot
		close(done)
		synctest.Wait()
		require.Empty(t, slots.total)
		require.Empty(t, slots.organisations)
	})
}
