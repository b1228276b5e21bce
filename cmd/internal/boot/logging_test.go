package boot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

func TestBufferedLogger_delaysOnlyLinesOfLowLevels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		reader, err := os.Open(out.Name())
		require.NoError(t, err)
		defer func() { require.NoError(t, errors.Join(out.Close(), reader.Close())) }()
		// newMessages returns the messages that were logged since its last call.
		newMessages := func() (messages []string) {
			lines, err := io.ReadAll(reader)
			require.NoError(t, err)
			for line := range bytes.Lines(lines) {
				var record struct{ Msg string }
				require.NoError(t, json.Unmarshal(line, &record))
				messages = append(messages, record.Msg)
			}
			return messages
		}
		logger, stop := boot.Logging{LogLevel: "info"}.BufferedLogger(out)
		logger = logger.With("program", "server").WithGroup("call")

		logger.InfoContext(t.Context(), "first")
		logger.InfoContext(t.Context(), "second")
		synctest.Wait()
		require.Empty(t, newMessages())
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"first", "second"}, newMessages(), "lines must be written after 200 ms at the latest")

		logger.InfoContext(t.Context(), "third")
		logger.WarnContext(t.Context(), "a warning")
		require.Equal(t, []string{"third", "a warning"}, newMessages(), "a warning must not wait, and the earlier lines must be written before the warning")

		logger.DebugContext(t.Context(), "not logged")
		logger.InfoContext(t.Context(), "last")
		stop()
		require.Equal(t, []string{"last"}, newMessages(), "when the logger is stopped, it must write the lines that are still buffered")
	})
}
