package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// field is what a column means.
type field int

// The fields. Unused ones are known, but nothing is taken from them.
const (
	fieldLink field = iota
	fieldDate
	fieldTime
	fieldViews
	fieldLikes
	fieldComments
	fieldShares
	fieldBookmarks
	fieldTitle
	fieldUsername
	fieldUploadedAt
	fieldVideoLength
	fieldInterpolated
	fieldCount
	fieldUnused
)

var fieldNames = [fieldCount]string{"link", "date", "time", "views", "likes", "comments", "shares", "bookmarks", "title", "username",
	"uploaded_at", "video_length", "interpolated"}

func (f field) String() string { return fieldNames[f] }

// aliases are the names under which common trackers and platforms have the fields, without case, blanks and signs. Names
// that mean different things in different places ("timestamp", "favorites", "author", "created_at") are left to --map.
var aliases = map[field][]string{
	fieldLink:        {"link", "url", "videourl", "videolink", "adlink", "posturl", "postlink", "permalink", "shareurl", "webvideourl"},
	fieldDate:        {"date", "day", "snapshotdate"},
	fieldTime:        {"time", "datetime", "measuredat", "fetchedat", "collectedat", "scrapedat", "recordedat", "snapshotat"},
	fieldViews:       {"views", "viewcount", "viewscount", "plays", "playcount", "videoviews", "videoviewcount", "videoplaycount"},
	fieldLikes:       {"likes", "likecount", "likescount", "diggcount", "hearts"},
	fieldComments:    {"comments", "commentcount", "commentscount"},
	fieldShares:      {"shares", "sharecount", "sharescount"},
	fieldBookmarks:   {"bookmarks", "bookmarkcount", "saves", "savecount", "savescount", "collectcount"},
	fieldTitle:       {"title", "caption", "desc", "text"},
	fieldUsername:    {"username", "handle", "uniqueid", "accountusername", "ownerusername", "authorhandle"},
	fieldUploadedAt:  {"uploadedat", "uploaddate", "publishedat", "publishdate", "postedat", "postdate", "createtimeiso"},
	fieldVideoLength: {"videolength", "length", "duration", "durationseconds", "lengthseconds", "videoduration"},

	fieldInterpolated: {"interpolated"},
	// What our own exports and answers have beside these.
	fieldUnused: {"source", "engagements", "displayusername", "platform"},
}

// byAlias is aliases the other way round.
var byAlias = func() map[string]field {
	m := map[string]field{}
	for f, names := range aliases {
		for _, name := range names {
			m[name] = f
		}
	}
	return m
}()

// Columns say what the columns of a file mean.
type Columns struct {
	// Map gives columns a meaning by name: theirs to ours.
	Map map[string]string
	// IgnoreUnknown leaves columns out that mean nothing; otherwise they are an error.
	IgnoreUnknown bool
}

// Check returns what is wrong with the map.
func (c Columns) Check() error {
	for theirs, ours := range c.Map {
		if !slices.Contains(fieldNames[:], ours) && ours != "" {
			return fmt.Errorf("%s=%s: %q is none of %s, and not empty, which leaves the column out", theirs, ours, ours, strings.Join(fieldNames[:], ", "))
		}
	}
	return nil
}

func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// meaning returns what a column means.
func (c Columns) meaning(name string) (field, error) {
	for theirs, ours := range c.Map {
		if theirs == strings.TrimSpace(name) {
			if ours == "" {
				return fieldUnused, nil
			}
			return field(slices.Index(fieldNames[:], ours)), nil
		}
	}
	if f, ok := byAlias[fold(name)]; ok {
		return f, nil
	}
	if c.IgnoreUnknown {
		return fieldUnused, nil
	}
	return 0, fmt.Errorf("column %q is not known: say what it means by --map %q=…, or leave such columns out by --ignore-unknown; the names are %s",
		cut(name), cut(name), strings.Join(fieldNames[:], ", "))
}

// unmet is the part of a map that no column has borne yet, and the names that the columns have instead.
type unmet struct {
	left  map[string]string
	names []string // the first of them
	more  bool
}

// shownNames is how many columns an error names.
const shownNames = 20

func (c Columns) unmet() unmet { return unmet{left: maps.Clone(c.Map)} }

func (u *unmet) meet(name string) {
	if len(u.left) == 0 { // what is there no longer matters
		return
	}
	delete(u.left, strings.TrimSpace(name))
	switch quoted := fmt.Sprintf("%q", cut(name)); {
	case slices.Contains(u.names, quoted):
	case len(u.names) < shownNames:
		u.names = append(u.names, quoted)
	default:
		u.more = true
	}
}

// err tells of an entry that no column bears: what it was to bring in would be missing without a word.
func (u *unmet) err() error {
	if len(u.left) == 0 {
		return nil
	}
	theirs := slices.Min(slices.Collect(maps.Keys(u.left)))
	more := ""
	if u.more {
		more = " and more"
	}
	return fmt.Errorf("--map %q=%s: no column is called that; the file has %s%s", cut(theirs), u.left[theirs], strings.Join(u.names, ", "), more)
}

// header reads a first line. Each meaning may be there once.
func (c Columns) header(names []string) ([]field, error) {
	fields := make([]field, len(names))
	of := map[field]string{}
	unmet := c.unmet()
	for _, name := range names {
		unmet.meet(name)
	}
	if err := unmet.err(); err != nil {
		return nil, err
	}
	for i, name := range names {
		f, err := c.meaning(name)
		if err != nil {
			return nil, err
		}
		if other, ok := of[f]; ok && f != fieldUnused {
			return nil, twice(f, other, name)
		}
		fields[i], of[f] = f, name
	}
	if _, ok := of[fieldLink]; !ok {
		return nil, fmt.Errorf("no column is the video's link (%s): is the first line the names of the columns? --map theirs=link names it",
			strings.Join(aliases[fieldLink], ", "))
	}
	return fields, nil
}

func twice(f field, a, b string) error {
	return fmt.Errorf("columns %q and %q both mean %s: leave one out by --map %q=", cut(a), cut(b), f, cut(b))
}

// cut keeps what is quoted of a file short.
func cut(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
