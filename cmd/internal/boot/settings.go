package boot

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/reeltally/reeltally/outbound"
)

// Parse reads arguments and environment variables into the struct to which grammar points. The tag `setting`
// names the variable of a field. An argument overrides the variable. Wrong input gives a UsageError.
func Parse(p Process, grammar any, options ...kong.Option) (*kong.Context, error) {
	exited := false
	options = append([]kong.Option{
		kong.Name(p.Name),
		kong.Vars{"log_level": "info", "database_url": "sqlite:data/reeltally.db", "version": p.Name + " " + Version()},
		kong.Embed(&versionFlag{}),
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { exited = true }), // kong calls Exit when it has printed the help or the version, and then continues; Parse ignores the errors that this causes
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueFormatter(flagHelp),
		kong.Resolvers(environmentResolver(p.Env)),
		durationOption(),
		keyValueOption(ParseDuration),
		keyValueOption(parseWholeNumber),
		timeOption(),
	}, options...)
	parser, err := kong.New(grammar, options...)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(p.Args)
	switch {
	case exited:
		return nil, ErrHelpShown
	case errors.As(err, new(printError)):
		return nil, err
	case err != nil:
		return nil, UsageError{addVariable(parser.Model, err)}
	}
	if err := checkVariables(p.Environ); err != nil {
		return nil, err
	}
	return parsed, nil
}

// versionFlag has the flag --version, which prints the name and the version of the program.
type versionFlag struct {
	Version versionRequest `help:"Print the version."`
}

// versionRequest is the type of the flag --version. It is used instead of kong.VersionFlag, which ignores errors when it writes the version.
type versionRequest bool

// BeforeReset prints the version. Parse then returns ErrHelpShown.
func (versionRequest) BeforeReset(app *kong.Kong, vars kong.Vars) error {
	if _, err := fmt.Fprintln(app.Stdout, vars["version"]); err != nil {
		return printError{err}
	}
	app.Exit(0)
	return nil
}

// printError is the error of writing the version to standard output.
type printError struct{ error }

// Description returns an option for Parse that shows the text at the top of the help.
func Description(text string) kong.Option { return kong.Description(text) }

// variableOf returns the name of a flag's environment variable, or "" if the flag has none.
func variableOf(v *kong.Value) string { return v.Tag.Get("setting") }

// flagOf returns the name of the flag that an environment variable sets, for example "app-url" for REELTALLY_APP_URL.
// It is wrong for REELTALLY_MIGRATE_TOKEN, whose flag is "token".
func flagOf(variable string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "REELTALLY_")), "_", "-")
}

// environmentResolver returns a kong resolver that gives flags the values of environment variables.
// An empty variable counts as not set.
func environmentResolver(lookupEnv func(string) (string, bool)) kong.ResolverFunc {
	// The tag "env" of kong is not used: it reads only the environment of this process, not lookupEnv, and
	// shows secrets in errors.
	return func(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
		if name := variableOf(f.Value); name != "" {
			if value, ok := lookupEnv(name); ok && value != "" {
				return value, nil
			}
		}
		return nil, nil // a nil value tells kong that no environment variable sets the flag
	}
}

// flagHelp returns the help text of a flag, with the name of its environment variable and its default in brackets.
func flagHelp(v *kong.Value) string {
	var notes []string
	if name := variableOf(v); name != "" {
		notes = append(notes, name)
	}
	if v.HasDefault && v.Default != "" {
		notes = append(notes, "default "+v.Default)
	}
	if len(notes) == 0 {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + strings.Join(notes, ", ") + ")."
}

// addVariable adds the name of the environment variable to errors of kong whose text begins with a
// flag. It returns other errors unchanged.
func addVariable(app *kong.Application, err error) error {
	text := err.Error()
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			if name := variableOf(f.Value); name != "" && strings.HasPrefix(text, "--"+f.Name) {
				text = "--" + f.Name + " (" + name + ")" + strings.TrimPrefix(text, "--"+f.Name)
			}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(app.Node)
	if text == err.Error() {
		return err
	}
	return fmt.Errorf("%s", text) //nolint:err113 // kong's error with the variable's name added
}

// InvalidSetting returns a UsageError for a setting with an invalid value. The error describes the valid values. It also shows the invalid value,
// except if this value is a Secret.
func InvalidSetting(variable string, value any, allowed string) error {
	return UsageError{fmt.Errorf("--%s (%s) is %q; it must be %s", flagOf(variable), variable, fmt.Sprint(value), allowed)}
}

// CheckBaseURL returns a UsageError if `value` is not an http or https URL to which a path can be
// appended. The error does not show passwords.
func CheckBaseURL(variable, value string) error {
	if _, err := outbound.ParseBaseURL(value); err == nil {
		return nil
	}
	if beforeHost := strings.LastIndex(value, "@"); beforeHost >= 0 {
		scheme, _, found := strings.Cut(value, "://")
		value = map[bool]string{true: scheme + "://"}[found] + "(hidden)" + value[beforeHost:]
	}
	return InvalidSetting(variable, value, "an http or https URL without user, password, query and fragment, for example https://reeltally.example.com")
}

// Secret is a setting whose value is not shown in logs and errors. Reveal returns the value.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString returns the same text as String, so that the format %#v does not show the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue returns the same text as String, so that logs of slog do not show the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Reveal returns the secret value.
func (s Secret) Reveal() string { return string(s) }
