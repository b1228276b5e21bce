package db

import (
	"bytes"
	"context"
	"database/sql/driver"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pgx returns driver.ErrBadConn for a statement whose context is cancelled just before the statement is sent. This moment is too short for
// a test with a database.
func TestSQLLog_containsNoFailureOfACancelledStatement(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := newSQLLog(slog.New(slog.NewTextHandler(&text, nil)))
	statement := func() (string, int64) { return "SELECT 1", 0 }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	log.Trace(cancelled, time.Now(), statement, driver.ErrBadConn)
	require.Empty(t, text.String())
	log.Trace(t.Context(), time.Now(), statement, driver.ErrBadConn)
	require.Contains(t, text.String(), "bad connection")
	expired, cancelExpired := context.WithTimeout(t.Context(), 0)
	defer cancelExpired()
	text.Reset()
	log.Trace(expired, time.Now(), statement, driver.ErrBadConn)
	require.Contains(t, text.String(), "bad connection", "a statement that ran out of time must be logged")
}
