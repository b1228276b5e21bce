package collector

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/internal/tracing"
	"github.com/reeltally/reeltally/store/queue"
)

// startCollectSpan starts the span in which a worker claims, fetches and stores targets. worker.claim
// calls it only if a target is due, so that an idle collector sends no traces.
func (w *worker) startCollectSpan(ctx context.Context) context.Context {
	ctx, _ = tracing.Root(ctx, w.Traces, "collect "+w.source.Name(), trace.WithAttributes(attribute.String("reeltally.source", w.source.Name())))
	return ctx
}

// endCollectSpan ends the span that startCollectSpan started. It does nothing if ctx has no span.
func endCollectSpan(ctx context.Context, claim queue.Claim, err error) {
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.Int("reeltally.targets", len(claim.Targets)))
	tracing.End(span, err)
}

// callSource asks the source for a batch, and records a span with the number of results of each class, such as reeltally.results.ok.
func (w *worker) callSource(ctx context.Context, batch []queue.Target) (replies []quota.Reply, err error) {
	ctx, span := tracing.Start(ctx, "call "+w.source.Name(), attribute.String("reeltally.source", w.source.Name()),
		attribute.String("reeltally.platform", string(batch[0].Platform)), attribute.String("reeltally.kind", string(batch[0].Kind)),
		attribute.Int("reeltally.targets", len(batch)))
	defer func() {
		for class, n := range targetCountsByClass(replies) {
			span.SetAttributes(attribute.Int("reeltally.results."+class, n))
		}
		tracing.End(span, err)
	}()
	return w.quota.Call(ctx, w.source, batch)
}

// targetCountsByClass returns the number of targets of each class. Targets without results are
// counted as "divided" or "stopped"; see quota.Reply.
func targetCountsByClass(replies []quota.Reply) map[string]int {
	n := map[string]int{}
	for _, reply := range replies {
		switch {
		case reply.MustDivide:
			n["divided"] += len(reply.Targets)
		case reply.Stopped:
			n["stopped"] += len(reply.Targets)
		}
		for _, r := range reply.Results {
			n[string(r.Class)]++
		}
	}
	return n
}
