package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// For any file, the row reader must end with io.EOF or an error, and the parser must return only valid records.
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
			rec, err := parser.parseRow(t.Context(), line, &v)
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
