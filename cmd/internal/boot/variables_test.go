package boot_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// Requirements in docs/coverage.md: 11.8-05
func TestParse_refusesVariablesThatDoNotExist(t *testing.T) {
	t.Parallel()
	parse := func(environ ...string) error {
		_, err := boot.Parse(boot.Process{Name: "program", Env: func(string) (string, bool) { return "", false }, Environ: environ}, &struct{}{})
		return err
	}
	require.NoError(t, parse("HOME=/", "REELTALLY_DATABASE_URL=x", "REELTALLY_VENDOR_KEY=", "REELTALLY_TOKEN=rt_x", "REELTALLY_TEST_POSTGRES_URL=y", "MY_REELTALLY_SETTING=1"))
	require.ErrorContains(t, parse("REELTALLY_LISTENINGS=:1"), "unknown environment variable REELTALLY_LISTENINGS: the most similar known one is REELTALLY_LISTEN")
	err := parse("REELTALLY_DATABSE_URL=secret", "REELTALLY_YOUTUBE_KEY=secret", "REELTALLY_LISTEN=:1")
	var usage boot.UsageError
	require.ErrorAs(t, err, &usage)
	require.EqualError(t, err, "unknown environment variable REELTALLY_DATABSE_URL: the most similar known one is REELTALLY_DATABASE_URL\n"+
		"unknown environment variable REELTALLY_YOUTUBE_KEY: the most similar known one is REELTALLY_YOUTUBE_API_KEY")
	require.ErrorContains(t, parse("REELTALLY_COFFEE_MACHINE=on"), "unknown environment variable REELTALLY_COFFEE_MACHINE: the help of each program lists its variables")
}

func TestVariables_listAllSettings(t *testing.T) {
	t.Parallel()
	setting := regexp.MustCompile(`setting:"(REELTALLY_[A-Z_0-9]+)"`)
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range setting.FindAllSubmatch(source, -1) {
			found[string(match[1])] = true
		}
		return err
	}))
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	require.ElementsMatch(t, names, boot.Variables)
	require.True(t, slices.IsSorted(boot.Variables))
}

// The errors of settings derive the name of the flag from the name of the variable.
func TestInvalidSetting_namesTheFlagOfEverySetting(t *testing.T) {
	t.Parallel()
	field := regexp.MustCompile("(?m)^\\s*(\\w+)\\s+\\S+\\s+`(.*setting:.*)`$")
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range field.FindAllStringSubmatch(string(text), -1) {
			tag := reflect.StructTag(match[2])
			grammar := reflect.New(reflect.StructOf([]reflect.StructField{{Name: match[1], Type: reflect.TypeFor[string](), Tag: reflect.StructTag(fmt.Sprintf("name:%q", tag.Get("name")))}}))
			parser, err := kong.New(grammar.Interface(), kong.NoDefaultHelp())
			require.NoError(t, err)
			variable := tag.Get("setting")
			found[variable] = true
			if variable == "REELTALLY_MIGRATE_TOKEN" { // its flag is --token; no error of InvalidSetting names it
				continue
			}
			require.EqualError(t, boot.InvalidSetting(variable, "off", "on"), fmt.Sprintf("--%s (%s) is \"off\"; it must be on", parser.Model.Flags[0].Name, variable))
		}
		return err
	}))
	require.ElementsMatch(t, slices.Collect(maps.Keys(found)), boot.Variables)
}

// Requirements in docs/coverage.md: 11.8-06
func TestParseDuration_acceptsDaysAndWeeks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "30d": 720 * time.Hour, "2w": 336 * time.Hour, "1d12h": 36 * time.Hour,
		"1.5d": 36 * time.Hour, "1w1d": 192 * time.Hour, "-1d": -24 * time.Hour, "0": 0} {
		got, err := boot.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "soon", "30", "d", "1y", "1d1"} {
		_, err := boot.ParseDuration(text)
		require.ErrorContains(t, err, "is not a duration; write for example 90s, 30m, 12h, 30d or 2w", text)
	}
	for _, text := range []string{"999999d", "999999999w", "-999999d", "9999999999999999999999h"} {
		_, err := boot.ParseDuration(text)
		require.EqualError(t, err, fmt.Sprintf("%q is too long: the maximum is 106751d", text))
	}
	var grammar struct {
		Wait time.Duration `setting:"REELTALLY_REQUEST_TIMEOUT" default:"1d"`
	}
	_, err := boot.Parse(boot.Process{Name: "program", Env: func(string) (string, bool) { return "2d", true }}, &grammar, kong.Exit(func(int) {}))
	require.NoError(t, err)
	require.Equal(t, 48*time.Hour, grammar.Wait)
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1w2d3h4m5s")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := boot.ParseDuration(text)
		if plain, plainErr := time.ParseDuration(text); plainErr == nil {
			require.NoError(t, err)
			require.Equal(t, plain, d)
		}
	})
}
