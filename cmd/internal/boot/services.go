package boot

import (
	"context"
	"errors"
	"slices"
)

// Service is a part of a program, such as the API, that runs concurrently with the program's other
// services. It returns nil when its context ends. If it returns earlier, RunAll stops the program.
type Service func(context.Context) error

// RunAll runs services until ctx ends or one service returns. It then stops them one by one in
// reverse order. List a service before the services that use it.
func RunAll(ctx context.Context, services ...Service) error {
	type running struct {
		stop func()
		done chan error
	}
	// The services must stop one after the other, so the end of ctx must not end their contexts. RunAll cancels the contexts of the services
	// one by one.
	base := context.WithoutCancel(ctx)
	ended := make(chan struct{}, len(services))
	started := make([]running, len(services))
	for i, run := range services {
		serviceCtx, stop := context.WithCancel(base)
		started[i] = running{stop, make(chan error, 1)}
		go func() {
			started[i].done <- run(serviceCtx)
			ended <- struct{}{}
		}()
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	var errs []error
	for _, s := range slices.Backward(started) {
		s.stop()
		errs = append(errs, <-s.done)
	}
	return errors.Join(errs...)
}
