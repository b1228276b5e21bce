package transfer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// field is the kind of content of a column in an imported file, for example the number of views.
type field int

// These constants are the possible contents of a column. fieldIgnored means that the column is not imported.
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
	fieldCount // number of fields, without fieldIgnored
	fieldIgnored
)

// fieldNames has the name of each field, as it is in exports, in the flag --map and in errors.
var fieldNames = [fieldCount]string{"link", "date", "time", "views", "likes", "comments", "shares", "bookmarks", "title", "username",
	"uploaded_at", "video_length", "interpolated", "source", "rounded", "removed"}

func (f field) String() string { return fieldNames[f] }

// aliases are common column names for each field, in lower case, without spaces and punctuation. Ambiguous names, such
// as "timestamp" and "author", are left out.
var aliases = map[field][]string{
	fieldLink: {"link", "url", "videourl", "videolink", "adlink", "posturl", "postlink", "permalink", "shareurl", "webvideourl"},
	fieldDate: {"date", "day", "snapshotdate"},
	fieldTime: {"time", "datetime", "measuredat", "fetchedat", "collectedat", "scrapedat", "recordedat", "snapshotat", "latestupdatedat"},
	// "video_view_count" is left out, because this older count of Instagram has only views of at least three seconds.
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
	// These columns are not imported. Such columns are in exports and API responses of ReelTally, or in responses of hosted services, so they do not
	// count as unknown.
	fieldIgnored: {"engagements", "displayusername", "platform", "organisationid", "adid", "linkedaccountid", "songname", "songlink",
		"notsafe", "private", "hiddenstats", "latestengagement", "outliermultiplier", "increase1d", "increase7d", "increase14d", "increase30d",
		"adinfoshop", "adisad", "adproductidshop", "labelids", "labelnames", "metricsmasked",
		"fetchstatus", "fetchdetail", "lastattemptat", "nextfetchat", "viewsgained7d", "thumbnailurl"},
}

// ignoredIfAdLinkExists are names of columns that are ignored if the file also has the column "ad_link". In other
// files, they count as unknown.
var ignoredIfAdLinkExists = []string{"createdat"}

var byAlias = func() map[string]field {
	m := map[string]field{}
	for f, names := range aliases {
		for _, name := range names {
			m[name] = f
		}
	}
	return m
}()

// Columns are the settings that say what the columns of an imported file contain.
type Columns struct {
	// Map has the names of columns as keys, and the names of fields, such as "views", as values. If the value is "", the column is ignored.
	Map map[string]string
	// If IgnoreUnknown is true, columns with unknown names are ignored. If it is false, such a column is an error.
	IgnoreUnknown bool
}

// Check returns an error if a value of Map is neither empty nor the name of a known field.
func (c Columns) Check() error {
	for column, fieldName := range c.Map {
		if !slices.Contains(fieldNames[:], fieldName) && fieldName != "" {
			return fmt.Errorf("--map %s=%s: the field %q must be one of %s, or empty to ignore the column", column, fieldName, fieldName, strings.Join(fieldNames[:], ", "))
		}
	}
	return nil
}

// simplifyColumnName returns the name of a column in lower case, without spaces and punctuation. The result can be compared with aliases.
func simplifyColumnName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// fieldOf returns the field of the column with this name, or fieldIgnored if Map maps the column to "". Entries of Map have precedence over aliases. If
// neither Map nor the aliases have the name, fieldOf returns false.
func (c Columns) fieldOf(name string) (field, bool) {
	for column, fieldName := range c.Map {
		if column == strings.TrimSpace(name) {
			if fieldName == "" {
				return fieldIgnored, true
			}
			return field(slices.Index(fieldNames[:], fieldName)), true
		}
	}
	f, ok := byAlias[simplifyColumnName(name)]
	return f, ok
}

// fieldsOf returns the field of each column, or fieldIgnored for an unknown column. It adds the names of unknown columns to the parameter unknown,
// except those that may be ignored. It returns an error if two columns have the same field.
func (c Columns) fieldsOf(names []string, unknown *unknownColumns) ([]field, error) {
	fields := make([]field, len(names))
	columnOf := map[field]string{}
	// Files of hosted services have the column "ad_link".
	hosted := slices.ContainsFunc(names, func(name string) bool { return simplifyColumnName(name) == "adlink" })
	for i, name := range names {
		f, known := c.fieldOf(name)
		if !known {
			f = fieldIgnored
			if !c.IgnoreUnknown && (!hosted || !slices.Contains(ignoredIfAdLinkExists, simplifyColumnName(name))) {
				unknown.addName(name)
			}
		}
		if other, ok := columnOf[f]; ok && f != fieldIgnored {
			return nil, duplicateColumnError(f, other, name)
		}
		fields[i], columnOf[f] = f, name
	}
	return fields, nil
}

// unknownColumns collects the unknown columns of a file, so that one error reports all of them.
type unknownColumns struct {
	names []string // names of the unknown columns, at most maxUnknownNames of them
	more  bool     // whether the file has more than maxUnknownNames unknown columns
}

// maxUnknownNames is the maximum number of unknown columns that an error lists.
const maxUnknownNames = 100

// addName adds the name of a column. It adds each name only once.
func (u *unknownColumns) addName(name string) {
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
	first := truncateText(u.names[0])
	if len(u.names) == 1 {
		return fmt.Errorf("column %q is not known: give its meaning with --map %q=FIELD, or ignore unknown columns with --ignore-unknown; the fields are %s",
			first, first, strings.Join(fieldNames[:], ", "))
	}
	quoted := make([]string, len(u.names))
	for n, name := range u.names {
		quoted[n] = fmt.Sprintf("%q", truncateText(name))
	}
	list := strings.Join(quoted, ", ")
	problem := fmt.Sprintf("columns %s are not known", list)
	if u.more {
		problem = fmt.Sprintf("more than %d columns are not known (%s, …)", maxUnknownNames, list)
	}
	return fmt.Errorf("%s: give the meaning of each column with --map, for example --map %q=FIELD, or ignore unknown columns with --ignore-unknown; the fields are %s",
		problem, first, strings.Join(fieldNames[:], ", "))
}

// unusedMappings collects the columns that Columns.Map names but that the file does not have. For the error message, it also has the names of the
// first columns of the file.
type unusedMappings struct {
	unused map[string]string // the entries of Columns.Map whose columns were not found yet
	names  []string          // quoted names of the file's first columns
	more   bool              // whether the file has more than maxShownNames columns
}

// maxShownNames limits how many columns of the file are listed in the error message of unusedMappings.
const maxShownNames = 20

// mappingsToFind returns all entries of Map. None of them is marked as found yet: call markFound for each column of the file.
func (c Columns) mappingsToFind() unusedMappings { return unusedMappings{unused: maps.Clone(c.Map)} }

// markFound records that the file has a column with this name.
func (u *unusedMappings) markFound(name string) {
	if len(u.unused) == 0 { // every column of Columns.Map was found, so no error message will need this name
		return
	}
	delete(u.unused, strings.TrimSpace(name))
	switch quoted := fmt.Sprintf("%q", truncateText(name)); {
	case slices.Contains(u.names, quoted):
	case len(u.names) < maxShownNames:
		u.names = append(u.names, quoted)
	default:
		u.more = true
	}
}

// err returns an error if the file lacks a column that Columns.Map names. Without this error, a mistyped name would silently lose the data
// of a column.
func (u *unusedMappings) err() error {
	if len(u.unused) == 0 {
		return nil
	}
	column := slices.Min(slices.Collect(maps.Keys(u.unused)))
	more := ""
	if u.more {
		more = " and more"
	}
	return fmt.Errorf("--map %q=%s: the file has no such column; its columns are %s%s", truncateText(column), u.unused[column], strings.Join(u.names, ", "), more)
}

// fieldsOfHeader returns the field of each column of a CSV file, like fieldsOf. It also returns an error for missing
// and unknown columns.
func (c Columns) fieldsOfHeader(names []string) ([]field, error) {
	unused := c.mappingsToFind()
	for _, name := range names {
		unused.markFound(name)
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

// duplicateColumnError returns the error for two columns of a file that have the same field.
func duplicateColumnError(f field, first, second string) error {
	if strings.TrimSpace(first) == strings.TrimSpace(second) { // do not suggest the flag --map, because it would ignore both columns
		return fmt.Errorf("%q occurs twice: rename or remove one of the two in the file", truncateText(first))
	}
	return fmt.Errorf("columns %q and %q both mean %s: ignore one with --map %q=", truncateText(first), truncateText(second), f, truncateText(second))
}

// truncateText shortens a text of the imported file to about 80 bytes, so that it fits into an error message.
func truncateText(s string) string {
	const maxBytes = 80
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "…"
}
