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

// record is the content of a valid row of an imported file: a video and, if the row has counts, the counts and their time.
type record struct {
	Line     int
	Platform link.Platform
	ID       string
	Handle   string `json:",omitempty"`
	Link     string // canonical link
	Measured bool   `json:",omitempty"` // whether the row has counts
	At       store.Instant
	Counts   store.Counts
	Rounded  [store.MetricCount]bool `json:",omitzero"` // whether each count is rounded, for example "12.3K"; in the order of the metrics
	Title    string                  `json:",omitempty"`
	account
	Uploaded *store.Date `json:",omitempty"`
	Length   *string     `json:",omitempty"`
	MadeUp   bool        `json:",omitempty"` // true if the counts are made up, because they come from a database with made-up data
	Stopped  bool        `json:",omitempty"` // whether the other tracker has stopped tracking the video

	withoutCounts   bool // whether the row has a date but no counts
	invalidUsername bool // whether the username was not valid and was dropped
}

// account identifies the author of a video: by username in lower case, or by the platform's id of the account.
type account struct {
	Username  string `json:",omitempty"`
	AccountID string `json:",omitempty"`
}

// rowTexts are the texts of one row of a file, indexed by field. A text is "" if the file has no column for the field.
type rowTexts [fieldCount]string

// errInterpolated reports that the counts of a row are interpolated: computed, not measured. Such a row is valid, but it is skipped.
var errInterpolated = errors.New("the counts of the row are interpolated")

// rowParser checks the values of rows and converts them to records.
type rowParser struct {
	now     store.Instant
	resolve func(context.Context, link.Link) (link.Link, error)
	formats formats
}

// parseRow converts a row to a record. If the counts are interpolated, the error is errInterpolated. Any other error
// says why the row is invalid, or wraps an error of p.resolve.
func (p rowParser) parseRow(ctx context.Context, line int, v *rowTexts) (record, error) {
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
	interpolated, err := parseBool(v, fieldInterpolated)
	if err != nil {
		return out, err
	}
	if interpolated {
		return out, errInterpolated
	}
	allRounded, err := parseBool(v, fieldRounded)
	if err != nil {
		return out, err
	}
	if out.Stopped, err = parseBool(v, fieldRemoved); err != nil {
		return out, err
	}
	if err := p.parseVideo(ctx, v, &out); err != nil {
		return out, err
	}
	out.MadeUp = v[fieldSource] == store.SandboxSource
	hasCounts := false
	counts := out.Counts.Fields()
	for i, f := range [...]field{fieldViews, fieldLikes, fieldComments, fieldShares, fieldBookmarks} { // the order of the metrics
		n, rounded, err := parseCount(v[f], p.formats.numbers[f])
		if err != nil {
			return out, fmt.Errorf("%s is %w", f, err)
		}
		*counts[i], hasCounts, out.Rounded[i] = n, hasCounts || n != nil, n != nil && (allRounded || rounded)
	}
	if v[fieldDate] == "" && v[fieldTime] == "" {
		if hasCounts {
			return out, errors.New("the row has counts but neither date nor time")
		}
		return out, nil
	}
	out.Measured, out.withoutCounts = hasCounts, !hasCounts
	return out, p.parseTime(v, &out)
}

// parseBool returns true for "true", "1" and "yes", and false for "false", "0", "no" and "". It ignores case, and
// returns an error for other texts.
func parseBool(v *rowTexts, f field) (bool, error) {
	switch strings.ToLower(v[f]) {
	case "true", "1", "yes":
		return true, nil
	case "", "false", "0", "no":
		return false, nil
	}
	return false, fmt.Errorf("%s is %q; it must be true, false or empty", f, truncateText(v[f]))
}

// parseTime parses the date and the time of a row. A date without a time means the beginning of the day, so
// that counts which ReelTally fetches on this day count as later.
func (p rowParser) parseTime(v *rowTexts, out *record) error {
	at, err := parseInstant(v[fieldDate], p.formats.dates[fieldDate])
	if v[fieldTime] != "" {
		var date = at
		if v[fieldDate] != "" && err != nil {
			return fmt.Errorf("date is %w", err)
		}
		if at, err = parseInstant(v[fieldTime], p.formats.dates[fieldTime]); err != nil {
			return fmt.Errorf("time is %w", err)
		}
		if v[fieldDate] != "" && date.Day() != at.Day() {
			return fmt.Errorf("the date is %s, but the time is on the UTC day %s", date.Day(), at.Day())
		}
	} else if err != nil {
		return fmt.Errorf("date is %w", err)
	}
	if at > p.now {
		return fmt.Errorf("the counts are from %s, which is in the future", at.Time().Format(time.RFC3339))
	}
	if out.Uploaded != nil && at.Day() < *out.Uploaded-backfill.UploadMargin {
		return fmt.Errorf("the counts are from %s, before the video was uploaded on %s", at.Day(), *out.Uploaded)
	}
	out.At = at
	return nil
}

// parseVideo parses the fields that describe the video, and stores them in out.
func (p rowParser) parseVideo(ctx context.Context, v *rowTexts, out *record) error {
	if v[fieldLink] == "" {
		return errors.New("the row has no link")
	}
	l, err := link.Parse(v[fieldLink])
	if err == nil && l.Kind == link.Short {
		l, err = p.resolve(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("link %q: %w", truncateText(v[fieldLink]), err)
	}
	if l.Kind != link.Video {
		return fmt.Errorf("link %q is the link of an account; it must be the link of a video", truncateText(v[fieldLink]))
	}
	out.Platform, out.ID, out.Handle, out.Link = l.Platform, l.ID, l.Handle, l.Canonical
	out.account = accountOf(l.Platform, v[fieldUsername])
	out.invalidUsername = out.account == account{} && v[fieldUsername] != ""
	out.Title = v[fieldTitle]
	if text := v[fieldUploadedAt]; text != "" {
		at, err := parseInstant(text, p.formats.dates[fieldUploadedAt])
		if err != nil {
			return fmt.Errorf("uploaded_at is %w", err)
		}
		if at > p.now {
			return fmt.Errorf("uploaded_at is %s, which is in the future", at.Day())
		}
		day := at.Day()
		out.Uploaded = &day
	}
	out.Length, err = parseLength(v[fieldVideoLength])
	return err
}

// accountOf parses a username. On Facebook and YouTube, the text can also be an account id. For
// other texts, accountOf returns the zero account.
func accountOf(p link.Platform, text string) account {
	if p == link.Facebook || p == link.YouTube {
		if l, err := link.Parse(link.AccountURLFromID(p, text)); err == nil && l.Kind == link.Account && l.ID == text {
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

// parseLength checks and normalises the length of a video in seconds. It returns nil for an empty text, which means that the length is
// unknown.
func parseLength(text string) (*string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means an unknown length
	}
	const maxSeconds = 1_000_000
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s < 0 || s > maxSeconds {
		return nil, fmt.Errorf("video_length is %q; it must be a number of seconds from 0 to %d", truncateText(text), maxSeconds)
	}
	out := strconv.FormatFloat(s, 'f', -1, 64)
	return &out, nil
}
