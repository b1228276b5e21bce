package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// For any input file, the row reader must reach an end, and the parser must return only valid records.
func FuzzRows(f *testing.F) {
	const videoURL = "https://youtu.be/dQw4w9WgXcQ"
	for _, seed := range []string{"link,date,views\n" + videoURL + ",2026-01-31,5\n", "link;time;likes;title\n" + videoURL + ";2026-01-31T00:00:00+05:00;0.0;'=x\n",
		`[{"link":"` + videoURL + `","date":"2026-01-31","views":5}, {}]`, `{"link":"` + videoURL + `","title":"\ud83d\ude00\""}` + "\n{}", "\xef\xbb\xbf\"link\"\n\"a\nb\"\n"} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	parser := rowParser{now: store.InstantOf(now), resolve: func(_ context.Context, l link.Link) (link.Link, error) { return l, nil }}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := newRowReader(bytes.NewReader(text), Columns{IgnoreUnknown: true})
		if err != nil {
			return
		}
		for range len(text) + 2 {
			line, v, err := r.next()
			var fileErr fileError
			if errors.Is(err, io.EOF) || errors.As(err, &fileErr) {
				return
			}
			require.Positive(t, line)
			require.LessOrEqual(t, line, 1+bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r")))
			if err != nil {
				continue
			}
			rec, err := parser.parse(t.Context(), line, &v)
			if err != nil {
				continue
			}
			require.NotEmpty(t, rec.ID)
			require.True(t, utf8.ValidString(rec.Title+rec.Username+rec.Link))
			require.NotContains(t, rec.Title+rec.Username, "\x00")
			if rec.Measured {
				require.LessOrEqual(t, rec.At, parser.now)
			}
			for _, n := range []*int64{rec.Counts.Views, rec.Counts.Likes, rec.Counts.Comments, rec.Counts.Shares, rec.Counts.Bookmarks} {
				if n != nil {
					require.GreaterOrEqual(t, *n, int64(0))
					require.LessOrEqual(t, *n, int64(maxCount))
				}
			}
		}
		require.Fail(t, "the reader must not return more rows than the file has characters")
	})
}

// An escaped text must contain no formula, wherever a spreadsheet splits the text into cells. unescapeFormulas must return the original
// text.
func FuzzEscapeFormulas(f *testing.F) {
	for _, seed := range []string{"", "=1", "'=1", "''", "'", "＝1", "\t", "a", "x;=HYPERLINK(1)", "x\t@a", "x\n+1", "x\r-1", `x;"=1"`, `x;'"=1`, ";;=1", "\t=1", "\n\n=1", "a;'b", "\xff=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := escapeFormulas(text)
		require.Equal(t, text, unescapeFormulas(escaped))
		for _, sign := range formulaSignsAtStart {
			require.False(t, strings.HasPrefix(escaped, string(sign)), "%q", escaped)
		}
		for _, separators := range []string{";", "\t", "\r\n", ";\r\n", "\t\r\n", ";\t\r\n"} {
			for cell := range strings.FieldsFuncSeq(escaped, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
				for _, sign := range formulaSigns {
					require.False(t, strings.HasPrefix(strings.TrimLeft(cell, `"`), string(sign)), "%q in %q", cell, escaped)
				}
			}
		}
	})
}
