package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// record is a row that was understood: a video, and what was measured of it at a time.
type record struct {
	Line     int
	Platform link.Platform
	ID       string
	Handle   string `json:",omitempty"`
	Link     string // canonical
	Measured bool   `json:",omitempty"` // false for a row that only names a video, as one without any count does
	At       store.Instant
	Counts   store.Counts
	Title    string `json:",omitempty"`
	account
	Uploaded *store.Date `json:",omitempty"`
	Length   *string     `json:",omitempty"`

	uncounted bool // it has a day, but no count
	unnamed   bool // its username is none, and was left out
}

// account is how a row names the author: by a folded username, or by the platform's own id.
type account struct {
	Username  string `json:",omitempty"`
	AccountID string `json:",omitempty"`
}

// values are the cells of a row by their meaning; "" where there is nothing.
type values [fieldCount]string

// errInterpolated leaves a row out that nobody measured.
var errInterpolated = errors.New("interpolated")

// rows turns values into records.
type rows struct {
	now     store.Instant
	resolve func(context.Context, link.Link) (link.Link, error)
}

// record reads a row. Every error is about the row alone and says what is allowed.
func (r rows) record(ctx context.Context, line int, v *values) (record, error) {
	out := record{Line: line}
	for f, text := range v {
		if !utf8.ValidString(text) {
			return out, fmt.Errorf("%s is not UTF-8: save the file as UTF-8", field(f))
		}
		if strings.ContainsRune(text, 0) {
			return out, fmt.Errorf("%s has a NUL character", field(f))
		}
		if f != int(fieldTitle) {
			v[f] = strings.TrimSpace(text)
		}
	}
	switch strings.ToLower(v[fieldInterpolated]) {
	case "true", "1", "yes":
		return out, errInterpolated
	case "", "false", "0", "no":
	default:
		return out, fmt.Errorf("interpolated is %q; it must be true, false or empty", cut(v[fieldInterpolated]))
	}
	if err := r.video(ctx, v, &out); err != nil {
		return out, err
	}
	counted := false
	for f, to := range map[field]**int64{fieldViews: &out.Counts.Views, fieldLikes: &out.Counts.Likes, fieldComments: &out.Counts.Comments,
		fieldShares: &out.Counts.Shares, fieldBookmarks: &out.Counts.Bookmarks} {
		n, err := count(v[f])
		if err != nil {
			return out, fmt.Errorf("%s is %w", f, err)
		}
		*to, counted = n, counted || n != nil
	}
	if v[fieldDate] == "" && v[fieldTime] == "" {
		if counted {
			return out, errors.New("there are counts, but neither date nor time: a count without its day means nothing")
		}
		return out, nil
	}
	out.Measured, out.uncounted = counted, !counted
	return out, r.when(v, &out)
}

// when reads date and time. A date alone is the beginning of its day, so that what is fetched later on it counts as later.
func (r rows) when(v *values, out *record) error {
	at, err := instant(v[fieldDate])
	if v[fieldTime] != "" {
		var date = at
		if v[fieldDate] != "" && err != nil {
			return fmt.Errorf("date is %w", err)
		}
		if at, err = instant(v[fieldTime]); err != nil {
			return fmt.Errorf("time is %w", err)
		}
		if v[fieldDate] != "" && date.Day() != at.Day() {
			return fmt.Errorf("date is %s, but time is on %s, UTC", date.Day(), at.Day())
		}
	} else if err != nil {
		return fmt.Errorf("date is %w", err)
	}
	if at > r.now {
		return fmt.Errorf("it was measured at %s, which is in the future", at.Time().Format(time.RFC3339))
	}
	if out.Uploaded != nil && at.Day() < *out.Uploaded-backfill.UploadMargin {
		return fmt.Errorf("it was measured on %s, before the video was uploaded on %s", at.Day(), *out.Uploaded)
	}
	out.At = at
	return nil
}

// video reads what a row says of the video itself.
func (r rows) video(ctx context.Context, v *values, out *record) error {
	if v[fieldLink] == "" {
		return errors.New("there is no link")
	}
	l, err := link.Parse(v[fieldLink])
	if err == nil && l.Kind == link.Short {
		l, err = r.resolve(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("link %q: %w", cut(v[fieldLink]), err)
	}
	if l.Kind != link.Video {
		return fmt.Errorf("link %q is that of an account; a video's is wanted", cut(v[fieldLink]))
	}
	out.Platform, out.ID, out.Handle, out.Link = l.Platform, l.ID, l.Handle, l.Canonical
	out.account = accountOf(l.Platform, v[fieldUsername])
	out.unnamed = out.account == account{} && v[fieldUsername] != ""
	out.Title = v[fieldTitle]
	if text := v[fieldUploadedAt]; text != "" {
		at, err := instant(text)
		if err != nil {
			return fmt.Errorf("uploaded_at is %w", err)
		}
		if at > r.now {
			return fmt.Errorf("uploaded_at is %s, which is in the future", at.Day())
		}
		day := at.Day()
		out.Uploaded = &day
	}
	out.Length, err = length(v[fieldVideoLength])
	return err
}

// accountOf reads a username: one of the form that the platform's handles have, or the account's own id where sources give
// that for want of a handle, Facebook's digits and YouTube's UC…, in which case matters. Of anything else nothing is taken: the
// numbers are right without, and the next fetch names the author.
func accountOf(p link.Platform, text string) account {
	if p == link.Facebook || p == link.YouTube {
		if l, err := link.Parse(link.AccountIDURL(p, text)); err == nil && l.Kind == link.Account && l.ID == text {
			return account{AccountID: text}
		}
	}
	folded := link.FoldUsername(text)
	l, err := link.Parse(link.AccountURL(p, folded))
	if err != nil || l.Kind != link.Account || l.Handle == "" || l.Handle != link.DisplayUsername(folded) {
		return account{}
	}
	return account{Username: folded}
}

// mostCounted is beyond what anything on the platforms has been seen or liked.
const mostCounted = 1_000_000_000_000

// count reads a whole number; nothing is nil. ".0" is allowed, which is how some programs write a column of whole numbers
// where one is missing; separators are not, since what they separate differs by country.
func count(text string) (*int64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nothing is known, which is no error
	}
	digits := strings.TrimSuffix(text, ".0")
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err == nil && digits[0] == '-', errors.Is(err, strconv.ErrRange) && digits[0] == '-':
		return nil, fmt.Errorf("%q; a count is not negative", cut(text))
	case errors.Is(err, strconv.ErrRange), err == nil && n > mostCounted:
		return nil, fmt.Errorf("%q; a count is at most %d", cut(text), int64(mostCounted))
	case err != nil || digits[0] == '+':
		return nil, fmt.Errorf("%q; a count is a whole number in digits alone, like 1234567, or empty where it is not known", cut(text))
	}
	return &n, nil
}

// length reads seconds.
func length(text string) (*string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nothing is known, which is no error
	}
	const longest = 1_000_000
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > longest {
		return nil, fmt.Errorf("video_length is %q; it must be seconds, from 0 to %d", cut(text), longest)
	}
	out := strconv.FormatFloat(s, 'f', -1, 64)
	return &out, nil
}

// The forms of a time; one without a zone is UTC.
var timeForms = []string{time.DateOnly, time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999 UTC", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04"}

func instant(text string) (store.Instant, error) {
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil && t.Year() > 1970 {
			return store.InstantOf(t), nil
		}
	}
	return 0, fmt.Errorf("%q; it must be like 2026-01-31 or 2026-01-31T12:00:00Z", cut(text))
}
