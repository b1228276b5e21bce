package transfer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// field says what a column of an imported file contains, for example the number of views.
type field int

// These constants are the possible fields. A column with fieldIgnored has a known name, but its values are not imported.
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
	fieldSource
	fieldRounded
	fieldRemoved
	fieldCount // the number of fields, without fieldCount itself and fieldIgnored
	fieldIgnored
)

var fieldNames = [fieldCount]string{"link", "date", "time", "views", "likes", "comments", "shares", "bookmarks", "title", "username",
	"uploaded_at", "video_length", "interpolated", "source", "rounded", "removed"}

func (f field) String() string { return fieldNames[f] }

// aliases are the column names that common trackers and platforms use for each field, in lower case and without spaces and punctuation.
// Ambiguous names, such as "timestamp", "favorites", "author" and "created_at", are not included. The operator must say with --map which
// field they are. "video_view_count" is not included, because it is Instagram's older count, which counts only views of at least three
// seconds. ReelTally's sources return another count of views.
var aliases = map[field][]string{
	fieldLink:        {"link", "url", "videourl", "videolink", "adlink", "posturl", "postlink", "permalink", "shareurl", "webvideourl"},
	fieldDate:        {"date", "day", "snapshotdate"},
	fieldTime:        {"time", "datetime", "measuredat", "fetchedat", "collectedat", "scrapedat", "recordedat", "snapshotat", "latestupdatedat"},
	fieldViews:       {"views", "viewcount", "viewscount", "plays", "playcount", "videoviews", "videoplaycount", "latestviews"},
	fieldLikes:       {"likes", "likecount", "likescount", "diggcount", "hearts", "latestlikes"},
	fieldComments:    {"comments", "commentcount", "commentscount", "latestcomments"},
	fieldShares:      {"shares", "sharecount", "sharescount", "latestshares"},
	fieldBookmarks:   {"bookmarks", "bookmarkcount", "saves", "savecount", "savescount", "collectcount", "latestbookmarks"},
	fieldTitle:       {"title", "caption", "desc", "text"},
	fieldUsername:    {"username", "handle", "uniqueid", "accountusername", "ownerusername", "authorhandle"},
	fieldUploadedAt:  {"uploadedat", "uploaddate", "publishedat", "publishdate", "postedat", "postdate", "createtimeiso"},
	fieldVideoLength: {"videolength", "length", "duration", "durationseconds", "lengthseconds", "videoduration"},

	fieldInterpolated: {"interpolated"},
	fieldSource:       {"source"},
	fieldRounded:      {"rounded"},
	fieldRemoved:      {"removed"},
	// These columns are in ReelTally's exports or API responses, or in the responses of hosted services, but an import does not need them.
	fieldIgnored: {"engagements", "displayusername", "platform", "organisationid", "adid", "linkedaccountid", "songname", "songlink",
		"notsafe", "private", "hiddenstats", "latestengagement", "outliermultiplier", "increase1d", "increase7d", "increase14d", "increase30d",
		"adinfoshop", "adisad", "adproductidshop", "labelids", "labelnames", "metricsmasked",
		"fetchstatus", "fetchdetail", "lastattemptat", "nextfetchat", "viewsgained7d", "thumbnailurl"},
}

// ignoredBesideAdLink are columns that are ignored only if the file also has the column "ad_link", which only files of hosted services have. In
// other files, the meaning of these names is ambiguous.
var ignoredBesideAdLink = []string{"createdat"}

// byAlias maps each alias to its field.
var byAlias = func() map[string]field {
	m := map[string]field{}
	for f, names := range aliases {
		for _, name := range names {
			m[name] = f
		}
	}
	return m
}()

// Columns are the settings that determine the meaning of a file's columns.
type Columns struct {
	// Map maps a column's name in the file to the name of a field. An empty field name ignores the column.
	Map map[string]string
	// IgnoreUnknown is whether columns with unknown names are ignored. If it is false, an unknown name is an error.
	IgnoreUnknown bool
}

// Check returns an error if Map has an unknown field name.
func (c Columns) Check() error {
	for column, fieldName := range c.Map {
		if !slices.Contains(fieldNames[:], fieldName) && fieldName != "" {
			return fmt.Errorf("--map %s=%s: the field %q must be one of %s, or empty to ignore the column", column, fieldName, fieldName, strings.Join(fieldNames[:], ", "))
		}
	}
	return nil
}

// foldName returns name in lower case and without spaces and punctuation.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// fieldOf returns the field of a column: the field in Map if Map has the column's name, otherwise the field that has the name as an alias.
// It returns false if the name is not known.
func (c Columns) fieldOf(name string) (field, bool) {
	for column, fieldName := range c.Map {
		if column == strings.TrimSpace(name) {
			if fieldName == "" {
				return fieldIgnored, true
			}
			return field(slices.Index(fieldNames[:], fieldName)), true
		}
	}
	f, ok := byAlias[foldName(name)]
	return f, ok
}

// fieldsOf returns the field of each column. A column with an unknown name gets fieldIgnored and, unless IgnoreUnknown is set, is added to
// unknown. fieldsOf returns an error if two columns have the same field.
func (c Columns) fieldsOf(names []string, unknown *unknownColumns) ([]field, error) {
	fields := make([]field, len(names))
	columnOf := map[field]string{}
	hosted := slices.ContainsFunc(names, func(name string) bool { return foldName(name) == "adlink" })
	for i, name := range names {
		f, known := c.fieldOf(name)
		if !known {
			f = fieldIgnored
			if !c.IgnoreUnknown && (!hosted || !slices.Contains(ignoredBesideAdLink, foldName(name))) {
				unknown.add(name)
			}
		}
		if other, ok := columnOf[f]; ok && f != fieldIgnored {
			return nil, duplicateColumn(f, other, name)
		}
		fields[i], columnOf[f] = f, name
	}
	return fields, nil
}

// unknownColumns collects the columns of a file whose names are not known, so that one error reports all of them.
type unknownColumns struct {
	names []string // names of the unknown columns, at most maxUnknownNames of them
	more  bool     // whether the file has more unknown columns than names lists
}

// maxUnknownNames is the maximum number of unknown columns that an error lists.
const maxUnknownNames = 100

// add adds a column, unless it was added before.
func (u *unknownColumns) add(name string) {
	switch {
	case slices.Contains(u.names, name):
	case len(u.names) == maxUnknownNames:
		u.more = true
	default:
		u.names = append(u.names, name)
	}
}

// err returns an error that lists the unknown columns, or nil if there are none.
func (u *unknownColumns) err() error {
	if len(u.names) == 0 {
		return nil
	}
	first := truncate(u.names[0])
	if len(u.names) == 1 {
		return fmt.Errorf("column %q is not known: give its meaning with --map %q=FIELD, or ignore unknown columns with --ignore-unknown; the fields are %s",
			first, first, strings.Join(fieldNames[:], ", "))
	}
	quoted := make([]string, len(u.names))
	for n, name := range u.names {
		quoted[n] = fmt.Sprintf("%q", truncate(name))
	}
	list := strings.Join(quoted, ", ")
	if u.more {
		list += " and more"
	}
	return fmt.Errorf("columns %s are not known: give the meaning of each with --map, for example --map %q=FIELD, or ignore unknown columns with --ignore-unknown; the fields are %s",
		list, first, strings.Join(fieldNames[:], ", "))
}

// unusedMappings has the entries of Columns.Map for which the file has had no column so far. It also has the names of the file's first columns,
// which its error lists.
type unusedMappings struct {
	unused map[string]string
	names  []string // quoted names of the file's first columns
	more   bool     // whether the file has more columns than names lists
}

// maxShownNames is the maximum number of column names that an error lists.
const maxShownNames = 20

// unusedMappings returns all entries of Map as unused. markUsed later removes the entries for which the file has a column.
func (c Columns) unusedMappings() unusedMappings { return unusedMappings{unused: maps.Clone(c.Map)} }

// markUsed removes the entry of Columns.Map for the column with this name, because the file has the column.
func (u *unusedMappings) markUsed(name string) {
	if len(u.unused) == 0 { // no entry of Columns.Map is unused, so no error about unused entries is possible
		return
	}
	delete(u.unused, strings.TrimSpace(name))
	switch quoted := fmt.Sprintf("%q", truncate(name)); {
	case slices.Contains(u.names, quoted):
	case len(u.names) < maxShownNames:
		u.names = append(u.names, quoted)
	default:
		u.more = true
	}
}

// err returns an error if the file has no column for an entry of Columns.Map. Without the error, the import would silently lose data.
func (u *unusedMappings) err() error {
	if len(u.unused) == 0 {
		return nil
	}
	column := slices.Min(slices.Collect(maps.Keys(u.unused)))
	more := ""
	if u.more {
		more = " and more"
	}
	return fmt.Errorf("--map %q=%s: the file has no such column; its columns are %s%s", truncate(column), u.unused[column], strings.Join(u.names, ", "), more)
}

// header returns the field of each column of a CSV file. It returns an error if columns are unknown, if two columns have the same field or
// if no column is the link.
func (c Columns) header(names []string) ([]field, error) {
	unused := c.unusedMappings()
	for _, name := range names {
		unused.markUsed(name)
	}
	if err := unused.err(); err != nil {
		return nil, err
	}
	var unknown unknownColumns
	fields, err := c.fieldsOf(names, &unknown)
	if err := cmp.Or(unknown.err(), err); err != nil {
		return nil, err
	}
	if !slices.Contains(fields, fieldLink) {
		return nil, fmt.Errorf("no column has the video's link (known names: %s): check that the first line has the column names, or use --map COLUMN=link",
			strings.Join(aliases[fieldLink], ", "))
	}
	return fields, nil
}

// duplicateColumn returns the error for two columns a and b with the same field.
func duplicateColumn(f field, a, b string) error {
	return fmt.Errorf("columns %q and %q both mean %s: ignore one with --map %q=", truncate(a), truncate(b), f, truncate(b))
}

// truncate shortens a text from the imported file, so that it fits into an error message.
func truncate(s string) string {
	const maxBytes = 80
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "…"
}
