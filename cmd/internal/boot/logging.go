package boot

import (
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// Logging has the setting of the log level. A struct that embeds Logging sets the default level with the tag set:"log_level=…".
type Logging struct {
	LogLevel string `setting:"REELTALLY_LOG_LEVEL" default:"${log_level}" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"Lowest level to log on standard error: debug, info, warn or error. The format is text at a terminal and JSON elsewhere."`
}

// Logger returns a logger that writes to w.
func (l Logging) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		level = slog.LevelInfo // cannot happen: the flag allows only known levels
	}
	options := &slog.HandlerOptions{Level: level}
	if IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
