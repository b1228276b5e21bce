package boot

import (
	"context"
	"errors"
	"slices"
)

// Part is a piece of a program that runs beside others. Run works until its context ends and returns nil then; what it
// returns earlier ends the whole program.
type Part struct {
	Name string
	Run  func(context.Context) error
}

// Together runs parts until ctx ends or one of them returns. They are stopped in reverse order, each after the one
// before has returned: what others lean on comes first in the list and goes last.
func Together(ctx context.Context, parts ...Part) error {
	type running struct {
		stop func()
		done chan error
	}
	// The parts live on after ctx: it is their turn to stop that ends each of them.
	base := context.WithoutCancel(ctx)
	ended := make(chan struct{}, len(parts))
	started := make([]running, len(parts))
	for i, p := range parts {
		own, stop := context.WithCancel(base)
		started[i] = running{stop, make(chan error, 1)}
		go func() {
			started[i].done <- p.Run(own)
			ended <- struct{}{}
		}()
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	var errs []error
	for _, part := range slices.Backward(started) {
		part.stop()
		errs = append(errs, <-part.done)
	}
	return errors.Join(errs...)
}
