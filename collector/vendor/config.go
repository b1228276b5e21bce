package vendor

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Config is a vendor description: it describes the API of a vendor. Paths into answers are gjson paths without modifiers and pipes, such as
// statistics.play_count, data.0.id or anchors.#(key=="x").id.
type Config struct {
	Name    string `json:"name"`            // name of the vendor in lower case; part of the source's name
	Notes   string `json:"notes,omitempty"` // text for people who read the description; not used by the program
	BaseURL string `json:"base_url"`
	Auth    Auth   `json:"auth"`
	// Timeout is the timeout of one call, such as "60s". If it is absent, the timeout of the program's HTTP client is used.
	Timeout     Duration `json:"timeout,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"` // maximum number of concurrent calls of one collector; 0 means 4
	Limits      []Limit  `json:"limits,omitempty"`
	// QuotaResets is the period of the vendor's quota. A used-up quota stops all calls until the period ends, or until the time that the
	// vendor's answer gives. The stop lasts at most an hour: then the source is tried again, because the operator can buy more units.
	QuotaResets Period   `json:"quota_resets,omitempty"`
	Message     []string `json:"message,omitempty"` // possible paths of the error text in an error answer
	Rules       []Rule   `json:"rules,omitempty"`   // the first matching rule gives the class of an answer, such as "gone"; if no rule matches, the HTTP status gives the class
	Run         *Run     `json:"run,omitempty"`     // describes the runs that calls start; nil if the answer to a call has the items
	Calls       []Call   `json:"calls"`             // kinds of calls, in order of preference; a video or account is requested with the first kind that can request it

	standard string // the vendor's public base URL; "" if the description is not shipped with the program
}

// Auth says where a request contains the credential.
type Auth struct {
	In   string `json:"in"`             // "header", "bearer" (Authorization: Bearer …) or "query": the part of the request that contains the credential
	Name string `json:"name,omitempty"` // the name of the header or query parameter; "" for "bearer"
}

// Limit is the maximum number of calls in a period. It is the vendor's limit, or a smaller limit that the operator sets to reduce the
// costs.
type Limit struct {
	Name  string `json:"name"`
	Calls int64  `json:"calls"`
	Per   Period `json:"per"`
}

// Rule matches a JSON answer if Status, When and And match. The answer then has the class Class.
type Rule struct {
	Status []int      `json:"status,omitempty"` // matching HTTP statuses; an empty list matches every status
	When   *Condition `json:"when,omitempty"`   // a condition on the answer; nil means no condition
	And    *Condition `json:"and,omitempty"`    // a second condition; must be nil if the field When is nil
	Class  string     `json:"class"`            // class of the answer: a source.Class ("ok" is a success), or "split" if the call had too many targets
}

// State describes unavailable videos or accounts. If the JSON object of a video or account satisfies the
// condition, its result has the class Class.
type State struct {
	Condition
	Class source.Class `json:"class"` // gone, missing, private, restricted, age_limited, unsupported or temporary
}

// Condition tests the values at its paths. It is true if at least one value exists, is not null, and satisfies OneOf and Contains.
type Condition struct {
	Path     Paths    `json:"path"`               // a path or a list of paths
	OneOf    []string `json:"one_of,omitempty"`   // true if the value, as text, equals one of these texts
	Contains []string `json:"contains,omitempty"` // true if the value, as text, contains one of these texts, ignoring case
}

// Paths lists paths into an answer. In JSON it is a path or a list of paths.
type Paths []string

// UnmarshalJSON accepts a path or a list of paths.
func (p *Paths) UnmarshalJSON(raw []byte) error {
	var path string
	if json.Unmarshal(raw, &path) == nil {
		*p = Paths{path}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("path must be a path or a list of paths, not %s", raw)
	}
	*p = list
	return nil
}

// Request is a template of an HTTP request. Path, Query and Body can contain placeholders: {id}, {link} or
// {handle} of the requested video or account. The requests of a List or a Run have other placeholders too.
type Request struct {
	Method string  `json:"method,omitempty"` // HTTP method: GET or POST; "" means GET
	Path   string  `json:"path"`
	Query  []Param `json:"query,omitempty"` // query parameters, sent in this order
	// Body is a JSON template. If an element of a list is a string with a placeholder, it becomes one element for
	// each target. Any other string with a placeholder gets the values of all targets, joined with Batch.Join.
	Body json.RawMessage `json:"body,omitempty"`
}

// Call describes a kind of API call, for videos or accounts of one platform. A call for accounts requests
// the profile of one account.
type Call struct {
	Platform link.Platform `json:"platform"`
	Kind     queue.Kind    `json:"kind"`
	// If Details is true, only two kinds of targets use this call: targets with Target.NeedDetails, and targets with at least failuresUntilDetails
	// failed attempts. Other targets use a later call with larger batches and less data.
	Details bool `json:"details,omitempty"`
	Request
	Batch Batch `json:"batch,omitzero"`
	// Items has the possible paths of the result in an answer, in order of preference. The result is the JSON
	// object of a video or account, called an item, or a list of such objects.
	Items []string `json:"items"` // "." is the path of the whole answer
	// Unwrap has the possible paths of an object inside an item. If an item has an object at one of these paths, this object is used instead
	// of the item.
	Unwrap []string `json:"unwrap,omitempty"`
	Match  Match    `json:"match"`
	// Missing is the class that a requested target gets if a successful answer does not contain it: gone or temporary. The default is explained at
	// missingResult.
	Missing source.Class `json:"missing,omitempty"`
	States  []State      `json:"states,omitempty"`
	// HiddenWhenAbsent has names of counts, such as likes. If an item has the views but lacks one of these counts, the platform hides that
	// count.
	HiddenWhenAbsent []string `json:"hidden_when_absent,omitempty"`
	// Rounds is true if the vendor may round all counts from 10,000 on, such as 573,942 to 573,900. History points with such counts are then
	// marked as rounded. If the vendor rounds only some counts, Alternative.RoundsFrom is set instead.
	Rounds bool             `json:"rounds,omitempty"`
	Fields map[string]Field `json:"fields"`
	// List describes the list of an account's videos; nil means that the vendor has no list. If List.Path is
	// empty, the answer of this Call has the list, so Call.Request can contain {count}.
	List *List `json:"list,omitempty"`
}

// List describes how to request an account's newest videos. In the request, {cursor} and {page} select the
// page, {units} is the number of units that the page must have, and {count} is the number of wanted entries.
type List struct {
	// Request is the request for a page, with {id} and {handle} from the profile. If Path is empty, the
	// list is in the answer with the profile.
	Request
	Items  []string `json:"items"`
	Unwrap []string `json:"unwrap,omitempty"`
	// Page is the number of list entries in one answer. If the request contains {units}, Page is the
	// number of entries in one unit.
	Page int `json:"page"`
	// MaxUnits is the largest value of {units} in one call. It is required if the request contains {units}, and must be 0 otherwise.
	MaxUnits int `json:"max_units,omitempty"`
	// Fresh is the number of newest entries that are requested to find new videos. 0 means the number of entries on one page.
	Fresh int `json:"fresh,omitempty"`
	// Next has possible paths of the cursor for the next page. If an answer has no cursor, its page is the
	// last one.
	Next []string `json:"next,omitempty"`
	// NextPage has possible paths of a second value that the request for the next page must contain besides the cursor. It
	// replaces {page}.
	NextPage []string `json:"next_page,omitempty"`
	// More is a condition on the answer; nil means no condition. If the condition is false, the page is the last one.
	More *Condition `json:"more,omitempty"`
	// Empty is a condition on a list entry; nil means no condition. If the condition is true, the entry
	// is not a video but a message that the account has no videos.
	Empty *Condition `json:"empty,omitempty"`
	// Fields has the places of the video's "id" in an entry, its upload time ("uploaded_at"), and the "account_id" and "username" of its
	// author. Entries of other authors are left out.
	Fields map[string]Field `json:"fields"`
}

// Param is a query parameter of a request. If a call requests several targets, the placeholders in Value are replaced for each target, and
// the results are joined with Batch.Join.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Batch says how many targets (videos or accounts) one call can have, and which separator stands between the values of several targets.
type Batch struct {
	Size int    `json:"size"`
	Join string `json:"join,omitempty"`
}

// Match says how the source finds the requested video to which an item of the answer belongs. Only calls for videos have a Match.
type Match struct {
	ID   []string `json:"id,omitempty"`   // possible paths of the target's id in an item
	Link []string `json:"link,omitempty"` // possible paths of a link or text that contains the target's id; used only if all fields in ID are empty
	// Sole has possible paths of a value that only items with a video have, such as the id of a post. If an item
	// without the fields in ID and Link has such a value and is the only item, it belongs to the requested target.
	Sole Paths `json:"sole,omitempty"` // requires that each call requests a single target
}

// Period is a calendar period in UTC: "minute", "hour", "day" or "month".
type Period string

// window returns the id of the current period, such as "2026-12" for a month, and the end of the period.
func (p Period) window(now time.Time) (id string, ends time.Time) {
	now = now.UTC()
	switch p {
	case "minute":
		start := now.Truncate(time.Minute)
		return start.Format("2006-01-02T15:04Z"), start.Add(time.Minute)
	case "hour":
		start := now.Truncate(time.Hour)
		return start.Format("2006-01-02T15Z"), start.Add(time.Hour)
	case "month":
		start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		return start.Format("2006-01"), start.AddDate(0, 1, 0)
	default:
		start := now.Truncate(24 * time.Hour)
		return start.Format(time.DateOnly), start.AddDate(0, 0, 1)
	}
}

// Duration is a time.Duration in JSON, such as "90s".
type Duration time.Duration

// UnmarshalJSON accepts a string with a positive duration in the format of time.ParseDuration.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`timeout must be a string such as "60s", not %s`, raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed <= 0 {
		return fmt.Errorf(`timeout must be a positive duration such as "60s", not %q`, text)
	}
	*d = Duration(parsed)
	return nil
}

//go:embed configs/*.json
var shipped embed.FS

var shippedName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// BuiltInVendorNames returns the names of the vendors whose descriptions are built into the program.
func BuiltInVendorNames() []string {
	entries, err := shipped.ReadDir("configs")
	if err != nil {
		return nil // this case cannot occur, because the directory is embedded
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	return names
}

// Load returns the description of a vendor's API. nameOrPath is a name from BuiltInVendorNames, or the
// path of a JSON file.
func Load(nameOrPath string) (Config, error) {
	var text []byte
	var err error
	if shippedName.MatchString(nameOrPath) {
		text, err = shipped.ReadFile(path.Join("configs", nameOrPath+".json"))
		if err != nil {
			return Config{}, fmt.Errorf("vendor: unknown vendor %q; use %s, or the path of a JSON file", nameOrPath, strings.Join(BuiltInVendorNames(), ", "))
		}
	} else if text, err = os.ReadFile(nameOrPath); err != nil { //nolint:gosec // the operator chooses the file
		return Config{}, fmt.Errorf("vendor: %w", err)
	}
	config, err := Decode(text)
	if err != nil {
		return Config{}, fmt.Errorf("vendor: %s: %w", nameOrPath, err)
	}
	if shippedName.MatchString(nameOrPath) {
		config.standard = config.BaseURL
	}
	return config, nil
}

// Decode decodes a vendor description from JSON and validates it.
func Decode(text []byte) (Config, error) {
	var c Config
	if err := decodeStrictly(text, &c); err != nil {
		return Config{}, err
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// decodeStrictly decodes exactly one JSON value and returns an error for an unknown member.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		// The embedded struct Request is not a member of the JSON, so its name is removed from the error.
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "json: "), ".Request.", "."))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the text has more than one JSON value")
	}
	return nil
}
