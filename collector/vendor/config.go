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
)

// Config describes the API of a vendor. Paths into answers are gjson paths (statistics.play_count, data.0.id,
// anchors.#(key=="x").id) without modifiers and pipes.
type Config struct {
	Name    string `json:"name"`            // lower case; part of the source's name
	Notes   string `json:"notes,omitempty"` // notes for the reader of the description
	BaseURL string `json:"base_url"`
	Auth    Auth   `json:"auth"`
	// Timeout is the timeout of one call, e.g. "60s". If it is absent, the timeout of the HTTP client is used.
	Timeout     Duration `json:"timeout,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"` // calls that one collector makes at the same time; 0 means 4
	Limits      []Limit  `json:"limits,omitempty"`
	// QuotaResets is the period of the vendor's quota. A spent quota is reset at the end of the period. It is used if the vendor's answers do
	// not contain the time of the reset.
	QuotaResets Period   `json:"quota_resets,omitempty"`
	Message     []string `json:"message,omitempty"` // paths of the text of an error
	Rules       []Rule   `json:"rules,omitempty"`   // the first matching rule gives the class of an answer; otherwise the status does
	Calls       []Call   `json:"calls"`             // the first call that can request a target is used

	standard string // the base URL of a shipped description, which is the vendor's public one
}

// Auth is the place of the credential in a request.
type Auth struct {
	In   string `json:"in"`             // "header", "bearer" (Authorization: Bearer …) or "query"
	Name string `json:"name,omitempty"` // the name of the header or the parameter
}

// Limit is the number of calls in a period (UTC) that the vendor allows or that the operator wants to pay for.
type Limit struct {
	Name  string `json:"name"`
	Calls int64  `json:"calls"`
	Per   Period `json:"per"`
}

// Rule gives the class of an answer that is JSON. All its conditions must be true.
type Rule struct {
	Status []int  `json:"status,omitempty"`
	When   *When  `json:"when,omitempty"`
	And    *When  `json:"and,omitempty"` // a second condition besides when
	Class  string `json:"class"`         // a source.Class, or "split" if the call had too many targets
}

// State gives the class of an item that is not available, such as a deleted or private video.
type State struct {
	When
	Class source.Class `json:"class"` // gone, private, restricted, unsupported or temporary
}

// When is a condition on a value. Without OneOf and Contains, it is true if the value exists and is not null.
type When struct {
	Path     string   `json:"path"`
	OneOf    []string `json:"one_of,omitempty"`   // the value, as text, is one of these
	Contains []string `json:"contains,omitempty"` // the value, as text, contains one of these, in any case
}

// Request is an HTTP request. The placeholders {id}, {link} and {handle} in Path, Query and Body are replaced by the values of the target.
type Request struct {
	Method string  `json:"method,omitempty"` // GET or POST; "" means GET
	Path   string  `json:"path"`
	Query  []Param `json:"query,omitempty"` // sent in this order
	// Body is JSON. Inside a list, a string with a placeholder is repeated for each target. Elsewhere, the values of all targets are joined.
	// The strings "{count}" and "{units}" are replaced by numbers.
	Body json.RawMessage `json:"body,omitempty"`
}

// Call is a request for targets of one platform and kind. A call for accounts requests one account at a time and may have a List. If the
// answer with the profile also contains the list, {count} is the number of wanted entries.
type Call struct {
	Platform link.Platform `json:"platform"`
	Kind     source.Kind   `json:"kind"`
	// Details is true if only targets that need details use this call. Other targets use a later call, which has larger batches but
	// returns fewer facts.
	Details bool `json:"details,omitempty"`
	Request
	Batch Batch `json:"batch,omitzero"`
	// Items are the paths of the item or the list of items; the first existing one is used. "." is the whole answer.
	Items []string `json:"items"`
	// Unwrap are the paths inside an item at which the real item may be.
	Unwrap []string `json:"unwrap,omitempty"`
	Match  Match    `json:"match"`
	// Missing is the class of a target that is missing from a good answer: gone (default) or temporary.
	Missing source.Class `json:"missing,omitempty"`
	States  []State      `json:"states,omitempty"`
	// HiddenWhenAbsent are the counts that the platform hides if they are absent.
	HiddenWhenAbsent []string         `json:"hidden_when_absent,omitempty"`
	Fields           map[string]Field `json:"fields"`
	// List describes the list of an account's videos. It is nil if the vendor has no list.
	List *List `json:"list,omitempty"`
}

// List describes the list of an account's newest videos. Its request has the placeholders of the account, with the values from its profile,
// and three more: {cursor} is the start of the page, {units} the number of units of the page, and {count} the number of wanted entries in
// total. A query parameter whose {cursor} is empty is left out.
type List struct {
	// If the request has no Path, the entries are in the answer with the profile.
	Request
	Items  []string `json:"items"`
	Unwrap []string `json:"unwrap,omitempty"`
	// Page is the number of entries on a page. If the vendor's pages consist of units, it is the number of entries in a unit.
	Page int `json:"page"`
	// MaxUnits is the largest number of page units in one call. It is required with {units}.
	MaxUnits int `json:"max_units,omitempty"`
	// Fresh is the number of entries that are requested to find new videos. 0 means one page.
	Fresh int `json:"fresh,omitempty"`
	// Next are the paths of the {cursor} of the next page. On the last page, no path has a value.
	Next []string `json:"next,omitempty"`
	// More is a further condition for a next page. It may be nil.
	More *When `json:"more,omitempty"`
	// Empty is true for an entry that is not a video, but a message that there are no videos. It may be nil.
	Empty  *When            `json:"empty,omitempty"`
	Fields map[string]Field `json:"fields"` // id and uploaded_at
}

// Param is a query parameter. The values of several targets are joined.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Batch is the number of targets that fit into one call, and the separator between their values.
type Batch struct {
	Size int    `json:"size"`
	Join string `json:"join,omitempty"`
}

// Match finds the target that an item belongs to.
type Match struct {
	ID   []string `json:"id,omitempty"`   // paths of the id of the target
	Link []string `json:"link,omitempty"` // paths of a link that contains the id
	// Sole is true if the only item of a call for one target belongs to this target, whatever its id is. Some vendors return another id
	// than that in the link.
	Sole bool `json:"sole,omitempty"`
}

// Period is a calendar period in UTC: "minute", "hour", "day" or "month".
type Period string

// window returns an id of the period that contains now, and its end.
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

// UnmarshalJSON accepts the format of time.ParseDuration.
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

// Shipped returns the names of the vendors that the program has a description for.
func Shipped() []string {
	entries, err := shipped.ReadDir("configs")
	if err != nil {
		return nil // impossible: the directory is embedded
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	return names
}

// Load reads the description of a shipped vendor by its name, or that of any other vendor by the path of its JSON file. The error for an
// unknown member, a wrong type or an impossible value contains the member.
func Load(nameOrPath string) (Config, error) {
	var text []byte
	var err error
	if shippedName.MatchString(nameOrPath) {
		text, err = shipped.ReadFile(path.Join("configs", nameOrPath+".json"))
		if err != nil {
			return Config{}, fmt.Errorf("vendor: unknown vendor %q; use %s, or the path of a JSON file", nameOrPath, strings.Join(Shipped(), ", "))
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

// Decode decodes and validates a description.
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

// decodeStrictly decodes one JSON value and refuses unknown members.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		// Request is embedded and does not appear in the description.
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "json: "), ".Request.", "."))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}
