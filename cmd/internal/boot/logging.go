package boot

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"go.uber.org/zap/zapcore"
)

// Logging has the setting of the log level. A struct that embeds Logging sets the default level with the tag set:"log_level=…".
type Logging struct {
	LogLevel string `setting:"REELTALLY_LOG_LEVEL" default:"${log_level}" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"Lowest level to log on standard error: debug, info, warn or error. The format is text at a terminal and JSON elsewhere."`
}

// Logger returns a logger that writes to w.
func (l Logging) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		level = slog.LevelInfo // this case cannot occur, because the flag allows only known levels
	}
	options := &slog.HandlerOptions{Level: level}
	if IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// maxLogDelay is how long a BufferedLogger may keep a log line of level info or debug before it writes the line.
const maxLogDelay = 200 * time.Millisecond

// BufferedLogger returns a logger that writes lines of level info and debug together, after at most
// maxLogDelay. If w is a terminal, the logger writes each line immediately. The caller must call stop, which writes the remaining lines.
func (l Logging) BufferedLogger(w io.Writer) (logger *slog.Logger, stop func()) {
	if IsTerminal(w) {
		return l.Logger(w), func() {}
	}
	// Writing each line separately would take a quarter of the time of a small request.
	buffer := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(w), FlushInterval: maxLogDelay}
	return slog.New(flushingHandler{l.Logger(buffer).Handler(), buffer}), func() { _ = buffer.Stop() } // a log line that cannot be written is lost
}

// flushingHandler is a slog.Handler that buffers lines. It writes all buffered lines immediately when a warning or an error is logged.
type flushingHandler struct {
	slog.Handler
	buffer *zapcore.BufferedWriteSyncer
}

// Handle logs one record. If the record is a warning or an error, Handle then writes all buffered lines.
func (h flushingHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		_ = h.buffer.Sync() // ignore the error: a log line that cannot be written is lost
	}
	return err
}

// WithAttrs returns a handler that adds the attributes to each record.
func (h flushingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flushingHandler{h.Handler.WithAttrs(attrs), h.buffer}
}

// WithGroup returns a handler that puts all later attributes into the group with this name.
func (h flushingHandler) WithGroup(name string) slog.Handler {
	return flushingHandler{h.Handler.WithGroup(name), h.buffer}
}

// IsTerminal returns true if w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
