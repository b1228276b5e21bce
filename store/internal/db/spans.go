package db

import (
	"context"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/internal/tracing"
)

// maxSpanText is the maximum length of the SQL text in a span, in bytes.
const maxSpanText = 2000

// systemNames are the names that OpenTelemetry gives to the two engines.
var systemNames = map[string]string{"sqlite": "sqlite", "postgres": "postgresql"}

// namedTable matches the first table that a statement names.
var namedTable = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE)\s+"?([a-z_]+)`)

// startStatementSpan starts the span of a statement. The span has the SQL text with placeholders,
// and never the parameter values. If ctx has no span, startStatementSpan does nothing.
func startStatementSpan(ctx context.Context, engine, query string) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return tracing.StartCall(ctx, "")
	}
	text := shortenSQL(query)
	return tracing.StartCall(ctx, summarizeSQL(text), attribute.String("db.system.name", systemNames[engine]), attribute.String("db.query.text", text))
}

// startReadSpan starts one span for several SELECT statements that are sent together. If onReplica is true, the statements are sent to the
// replica.
func startReadSpan(ctx context.Context, engine string, onReplica bool, statements []statement) (context.Context, trace.Span) {
	queries := make([]string, len(statements))
	for i, s := range statements {
		queries[i] = s.query
	}
	ctx, span := startStatementSpan(ctx, engine, strings.Join(queries, "; "))
	if len(statements) > 1 {
		span.SetAttributes(attribute.Int("db.operation.batch.size", len(statements)))
	}
	if onReplica {
		span.SetAttributes(attribute.Bool("reeltally.replica", true))
	}
	return ctx, span
}

// shortenSQL returns the first maxSpanText bytes of a SQL text.
func shortenSQL(query string) string {
	if len(query) <= maxSpanText {
		return query
	}
	return strings.ToValidUTF8(query[:maxSpanText], "") + "…"
}

// summarizeSQL returns the kind of a statement and the first table that it names, such as "SELECT videos".
func summarizeSQL(query string) string {
	kind, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	kind = strings.ToUpper(kind)
	if table := namedTable.FindStringSubmatch(query); table != nil {
		return kind + " " + table[1]
	}
	return kind
}
