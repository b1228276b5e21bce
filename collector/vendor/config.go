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

// Config describes a vendor. Paths into answers are gjson paths (statistics.play_count, data.0.id,
// anchors.#(key=="x").id) without modifiers and pipes.
type Config struct {
	Name    string `json:"name"`            // lower case; part of the source's name
	Notes   string `json:"notes,omitempty"` // for the reader
	BaseURL string `json:"base_url"`
	Auth    Auth   `json:"auth"`
	// Timeout of one call, e.g. "60s"; absent means the client's.
	Timeout     Duration `json:"timeout,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"` // calls that one collector makes at the same time; 0 means 4
	Limits      []Limit  `json:"limits,omitempty"`
	// QuotaResets says when units that are used up come back, if the vendor does not say so itself.
	QuotaResets Period   `json:"quota_resets,omitempty"`
	Message     []string `json:"message,omitempty"` // where an error's text may stand
	Rules       []Rule   `json:"rules,omitempty"`   // what answers mean, the first that applies; else their status decides
	Calls       []Call   `json:"calls"`             // the first that can ask for a target is used

	standard string // the base URL of a description that is shipped: where the vendor serves everybody
}

// Auth says where the credential goes.
type Auth struct {
	In   string `json:"in"`             // "header", "bearer" (Authorization: Bearer …) or "query"
	Name string `json:"name,omitempty"` // of the header or the parameter
}

// Limit is how many calls the vendor allows, or the operator wants to pay for, in a period (UTC).
type Limit struct {
	Name  string `json:"name"`
	Calls int64  `json:"calls"`
	Per   Period `json:"per"`
}

// Rule says what an answer as a whole means, provided that it is JSON. All conditions that it names must hold.
type Rule struct {
	Status []int  `json:"status,omitempty"`
	When   *When  `json:"when,omitempty"`
	And    *When  `json:"and,omitempty"` // a second condition besides when
	Class  string `json:"class"`         // a source.Class, or "split": fewer targets at once
}

// State says what an item means that is found in place of, or along with, its facts: deleted, private.
type State struct {
	When
	Class source.Class `json:"class"` // gone, private, restricted, unsupported or temporary
}

// When is a condition on a value. Without OneOf and Contains it holds when the value is there and not null.
type When struct {
	Path     string   `json:"path"`
	OneOf    []string `json:"one_of,omitempty"`   // the value, as text, is one of these
	Contains []string `json:"contains,omitempty"` // the value, as text, contains one of these, in any case
}

// Request is what is sent. In Path, Query and Body, {id}, {link} and {handle} stand for the target's.
type Request struct {
	Method string  `json:"method,omitempty"` // GET or POST; "" means GET
	Path   string  `json:"path"`
	Query  []Param `json:"query,omitempty"` // sent in this order
	// Body is JSON. A text with a placeholder stands for one element a target inside a list, elsewhere for the joined ones;
	// one that is {count} or {units} alone stands for a number.
	Body json.RawMessage `json:"body,omitempty"`
}

// Call is one way of asking, for targets of one platform and kind. A call for accounts takes one at a time; it may have a
// list, and, where the list comes in the same answer, say by {count} how many of its newest entries are wanted.
type Call struct {
	Platform link.Platform `json:"platform"`
	Kind     source.Kind   `json:"kind"`
	// Details marks a call of which only targets that need details may make use: it tells more than a later call that
	// takes many targets at once, or takes what a pasted link says where that one goes by ids.
	Details bool `json:"details,omitempty"`
	Request
	Batch Batch `json:"batch,omitzero"`
	// Items is where the item or the list of items stands, the first that is there; "." is the whole answer.
	Items []string `json:"items"`
	// Unwrap is where the real item may be wrapped inside an item.
	Unwrap []string `json:"unwrap,omitempty"`
	Match  Match    `json:"match"`
	// Missing is the class of a target without item in an otherwise good answer: gone (default) or temporary.
	Missing source.Class `json:"missing,omitempty"`
	States  []State      `json:"states,omitempty"`
	// HiddenWhenAbsent names counts whose absence means that the platform withholds them.
	HiddenWhenAbsent []string         `json:"hidden_when_absent,omitempty"`
	Fields           map[string]Field `json:"fields"`
	// List is how an account's videos are found; nil when the vendor has no list.
	List *List `json:"list,omitempty"`
}

// List is how the newest videos of an account are asked for, page by page. Its placeholders are those of the account, as its
// profile has just named them, and {cursor}, {units} and {count}: where the page begins, how many units of a page it
// takes, and how many entries are wanted in all. A query parameter with an empty {cursor} is left out.
type List struct {
	// Without Path the entries stand in the answer to the account's own call.
	Request
	Items  []string `json:"items"`
	Unwrap []string `json:"unwrap,omitempty"`
	// Page is how many entries a page has, or a unit of it.
	Page int `json:"page"`
	// MaxUnits is how many units a call may ask for; needed with {units}.
	MaxUnits int `json:"max_units,omitempty"`
	// Fresh is how many of the newest entries are looked at for what is new; 0 means a page.
	Fresh int `json:"fresh,omitempty"`
	// Next is where the {cursor} of the following page stands; there is none when nothing stands there.
	Next []string `json:"next,omitempty"`
	// More, when given, must hold too for a page to follow.
	More *When `json:"more,omitempty"`
	// Empty, when it holds for an entry, says that this is none but a note that there are no videos.
	Empty  *When            `json:"empty,omitempty"`
	Fields map[string]Field `json:"fields"` // id and uploaded_at
}

// Param is a query parameter. The values of several targets are joined.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Batch is how many targets fit into one call, and what stands between them.
type Batch struct {
	Size int    `json:"size"`
	Join string `json:"join,omitempty"`
}

// Match says to which target an item belongs.
type Match struct {
	ID   []string `json:"id,omitempty"`   // where its id stands
	Link []string `json:"link,omitempty"` // where a link stands that has the id in it
	// Sole takes the one item of a call for one target to be the target's, whatever its id: some vendors give another
	// id than that of the link.
	Sole bool `json:"sole,omitempty"`
}

// Period is a stretch of the calendar in UTC: "minute", "hour", "day" or "month".
type Period string

// window names the period that now falls into and says when it ends.
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

// Duration is a time.Duration that is written like "90s".
type Duration time.Duration

// UnmarshalJSON takes the format of time.ParseDuration.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`timeout must be a text such as "60s", not %s`, raw)
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

// Shipped lists the vendors that need no file.
func Shipped() []string {
	entries, err := shipped.ReadDir("configs")
	if err != nil {
		return nil // cannot be: the directory is part of the program
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	return names
}

// Load reads the description of a vendor: one that is shipped, by its name, or any other, by the path of its JSON
// file. Unknown members, wrong types and impossible values are errors that name the member.
func Load(nameOrPath string) (Config, error) {
	var text []byte
	var err error
	if shippedName.MatchString(nameOrPath) {
		text, err = shipped.ReadFile(path.Join("configs", nameOrPath+".json"))
		if err != nil {
			return Config{}, fmt.Errorf("vendor: no vendor %q; there are %s, or the path of a JSON file", nameOrPath, strings.Join(Shipped(), ", "))
		}
	} else if text, err = os.ReadFile(nameOrPath); err != nil { //nolint:gosec // the operator names a file of his own
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

// Decode reads and checks the text of a description.
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

func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		// Request is embedded, which is nothing that a reader of the description knows of.
		return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "json: "), ".Request.", "."))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}
