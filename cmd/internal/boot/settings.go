package boot

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"
)

// Parse reads the arguments and the environment into grammar, a pointer to a struct of kong's. A flag with the tag
// `setting:"REELTALLY_…"` is read from that variable when it is not among the arguments. The error names the flag, its
// variable, and what is allowed; it is a UsageError, or ErrHelpShown.
func Parse(p Process, grammar any, options ...kong.Option) (*kong.Context, error) {
	exited := false
	options = append([]kong.Option{
		kong.Name(p.Name),
		kong.Vars{"log_level": "info"},
		kong.Writers(p.Stdout, p.Stderr),
		kong.Exit(func(int) { exited = true }), // after the help; parsing goes on, and what it then says is of no matter
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.ValueFormatter(explain),
		kong.Resolvers(environment(p.Env)),
	}, options...)
	parser, err := kong.New(grammar, options...)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(p.Args)
	switch {
	case exited:
		return nil, ErrHelpShown
	case err != nil:
		return nil, UsageError{withVariables(parser.Model, err)}
	}
	return parsed, nil
}

// Describe says at the top of the help what a program is for.
func Describe(text string) kong.Option { return kong.Description(text) }

func setting(v *kong.Value) string { return v.Tag.Get("setting") }

// environment resolves flags. kong's own tag for variables would read the process's environment past Process.Env, and
// quote values in errors, secret ones as well. A variable that is set but empty counts as not set.
func environment(lookup func(string) (string, bool)) kong.ResolverFunc {
	return func(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
		if name := setting(f.Value); name != "" {
			if value, ok := lookup(name); ok && value != "" {
				return value, nil
			}
		}
		return nil, nil // kong's word for "not set here"
	}
}

// explain is the help of a flag: what it is, its variable, its default.
func explain(v *kong.Value) string {
	var notes []string
	if name := setting(v); name != "" {
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

// withVariables adds the variable to each flag that an error of kong's names.
func withVariables(app *kong.Application, err error) error {
	text := err.Error()
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			if name := setting(f.Value); name != "" && strings.HasPrefix(text, "--"+f.Name) {
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
	return fmt.Errorf("%s", text) //nolint:err113 // kong's own, with a name more
}

// Bad is the error of a setting whose value cannot be used. A Secret among the values stays one.
func Bad(flag, variable string, value any, allowed string) error {
	return UsageError{fmt.Errorf("--%s (%s) is %q; it must be %s", flag, variable, fmt.Sprint(value), allowed)}
}

// Secret is a setting that is never shown.
type Secret string

const hidden = "(hidden)"

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString keeps %#v from showing it.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps the log from showing it.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Reveal gives the secret itself.
func (s Secret) Reveal() string { return string(s) }
