package db

import (
	"context"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/internal/tracing"
)

// maxSpanText is the maximum length of the SQL text in a span, in bytes, without the "…" that ends a shortened text.
const maxSpanText = 2000

// systemNames are the names that OpenTelemetry gives to the two engines.
var systemNames = map[string]string{"sqlite": "sqlite", "postgres": "postgresql"}

// namedTable matches the first name after FROM, INTO or UPDATE in a statement. It is the name of a table, or of a list in a WITH clause.
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

// shortenSQL returns a SQL text of at most maxSpanText bytes unchanged. It returns the first maxSpanText bytes of a longer text, without an
// incomplete character at the end, and "…".
func shortenSQL(query string) string {
	if len(query) <= maxSpanText {
		return query
	}
	return strings.ToValidUTF8(query[:maxSpanText], "") + "…"
}

// summarizeSQL returns the first word of a statement and the first name after FROM, INTO or UPDATE, such as "SELECT videos". The name can also be
// that of a list in a WITH clause. Without such a name, summarizeSQL returns only the word.
func summarizeSQL(query string) string {
	kind, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	kind = strings.ToUpper(kind)
	if table := namedTable.FindStringSubmatch(query); table != nil {
		return kind + " " + table[1]
	}
	return kind
}
