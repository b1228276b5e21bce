package boot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type grammar struct {
	boot.Logging
	boot.Database
	boot.Metrics
	Key   boot.Secret `setting:"REELTALLY_KEY" help:"A key."`
	Count int         `setting:"REELTALLY_COUNT" default:"3" help:"How many."`
}

// printSettings is a program that prints its settings.
func printSettings(_ context.Context, p boot.Process) error {
	var g grammar
	if _, err := boot.Parse(p, &g, boot.Description("Prints its settings.")); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "%s %d %v %s", g.LogLevel, g.Count, g.Key, g.Key.Reveal())
	return err
}

func TestParse_readsSettingsFromFlagsAndEnvironmentVariables(t *testing.T) {
	t.Parallel()
	env := map[string]string{"REELTALLY_COUNT": "7", "REELTALLY_KEY": "s3cret", "REELTALLY_LOG_LEVEL": ""}
	status, out, _ := boottest.Run(t, printSettings, nil, env)
	require.Zero(t, status)
	require.Equal(t, "info 7 (hidden) s3cret", out, "an empty variable must count as not set")
	_, out, _ = boottest.Run(t, printSettings, nil, env, "--count", "8", "--log-level=warn")
	require.Equal(t, "warn 8 (hidden) s3cret", out, "a flag must have priority over the variable")
	_, out, _ = boottest.Run(t, printSettings, nil, nil)
	require.Equal(t, "info 3  ", out)
}

func TestParse_reportsTheFlagAndItsInvalidValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env   map[string]string
		args  []string
		wants []string
	}{
		"a value that is not a number": {map[string]string{"REELTALLY_COUNT": "many"}, nil, []string{"--count (REELTALLY_COUNT)", `"many"`}},
		"a value that is not allowed":  {map[string]string{"REELTALLY_LOG_LEVEL": "loud"}, nil, []string{"--log-level (REELTALLY_LOG_LEVEL)", `"debug"`, `"loud"`}},
		"an unknown flag":              {nil, []string{"--what"}, []string{"--what"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, err := boottest.Run(t, printSettings, nil, c.env, c.args...)
			require.Equal(t, 2, status)
			require.Empty(t, out)
			for _, want := range append(c.wants, "program --help") {
				require.Contains(t, err, want)
			}
		})
	}
}

func TestParse_helpExplainsEachSetting(t *testing.T) {
	t.Parallel()
	status, out, err := boottest.Run(t, printSettings, nil, map[string]string{"REELTALLY_KEY": "s3cret"}, "--help")
	require.Zero(t, status)
	require.Empty(t, err)
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"Prints its settings.", "How many (REELTALLY_COUNT, default 3).", "A key (REELTALLY_KEY).",
		"(REELTALLY_DATABASE_URL, default sqlite:data/reeltally.db)", "(REELTALLY_LOG_LEVEL, default info)", "(REELTALLY_METRICS_LISTEN)"} {
		require.Contains(t, words, want)
	}
	require.NotContains(t, out, "s3cret")
}

func TestParse_versionFlagPrintsTheVersionOfEachProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"server", "collector", "reeltally"} {
		var stdout, stderr bytes.Buffer
		p := boot.Process{Name: name, Args: []string{"--version"}, Env: func(string) (string, bool) { return "", false }, Stdout: &stdout, Stderr: &stderr}
		require.Zero(t, boot.Run(t.Context(), p, printSettings), stderr.String())
		require.Equal(t, name+" "+boot.Version()+"\n", stdout.String())
	}
}

func TestParse_failsIfTheVersionCannotBePrinted(t *testing.T) {
	t.Parallel()
	reader, closed := io.Pipe()
	require.NoError(t, reader.CloseWithError(errors.New("no space left on device")))
	var stderr bytes.Buffer
	p := boot.Process{Name: "program", Args: []string{"--version"}, Env: func(string) (string, bool) { return "", false }, Stdout: closed, Stderr: &stderr}
	require.Equal(t, 1, boot.Run(t.Context(), p, printSettings))
	require.Contains(t, stderr.String(), "no space left on device")
}

func TestSecret_hidesValueInLogsAndErrors(t *testing.T) {
	t.Parallel()
	out := boottest.NewOutput()
	s := boot.Secret("s3cret")
	slog.New(slog.NewJSONHandler(out, nil)).InfoContext(t.Context(), "shown", "key", s, "keys", fmt.Sprintf("%v %+v %#v %s", s, s, s, s))
	require.NotContains(t, out.String(), "s3cret")
	require.NotContains(t, boot.InvalidSetting("REELTALLY_KEY", s, "another").Error(), "s3cret")
	require.Contains(t, boot.InvalidSetting("REELTALLY_KEY", "seen", "another").Error(), `--key (REELTALLY_KEY) is "seen"; it must be another`)
}

func TestRun_returnsExitStatusForEachKindOfError(t *testing.T) {
	t.Parallel()
	failing := func(err error) func(context.Context, boot.Process) error {
		return func(context.Context, boot.Process) error { return err }
	}
	status, _, stderr := boottest.Run(t, failing(errors.New("broken")), nil, nil)
	require.Equal(t, 1, status)
	require.Equal(t, "program: broken\n", stderr)
	status, _, _ = boottest.Run(t, failing(boot.UsageError{Err: errors.New("wrong")}), nil, nil)
	require.Equal(t, 2, status)
	p := boottest.Start(t, func(ctx context.Context, _ boot.Process) error {
		<-ctx.Done()
		return boot.IgnoreShutdown(ctx, ctx.Err())
	}, nil, nil)
	require.Zero(t, p.Stop(), "after a shutdown, IgnoreShutdown must return nil, so that the exit status is 0")
	require.Empty(t, p.Stderr.String())
	p = boottest.Start(t, func(ctx context.Context, _ boot.Process) error {
		<-ctx.Done()
		return fmt.Errorf("video 5: %w", ctx.Err())
	}, nil, nil)
	require.Equal(t, 1, p.Stop())
	require.Equal(t, "program: interrupted before it finished; the output is incomplete\n", p.Stderr.String())
	broken := errors.New("broken")
	require.Equal(t, broken, boot.IgnoreShutdown(t.Context(), broken))
	require.Equal(t, context.Canceled, boot.IgnoreShutdown(t.Context(), context.Canceled), "if ctx was not cancelled, IgnoreShutdown must return the error")
}

func TestRunAll_stopsServicesInReverseOrder(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	order := make(chan string, 3)
	started := make(chan struct{}, 3)
	service := func(name string) boot.Service {
		return func(ctx context.Context) error {
			started <- struct{}{}
			<-ctx.Done()
			order <- name
			return nil
		}
	}
	done := make(chan error)
	go func() { done <- boot.RunAll(ctx, service("first"), service("second"), service("third")) }()
	for range 3 {
		<-started
	}
	stop()
	require.NoError(t, <-done)
	require.Equal(t, []string{"third", "second", "first"}, []string{<-order, <-order, <-order})
}

func TestRunAll_stopsAllServicesIfOneFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	err := boot.RunAll(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return nil },
		func(context.Context) error { return broken })
	require.ErrorIs(t, err, broken)
}

func TestServe_finishesRunningRequestsBeforeItStops(t *testing.T) {
	t.Parallel()
	l, err := boot.Listen(t.Context(), "REELTALLY_LISTEN", "127.0.0.1:0")
	require.NoError(t, err)
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-leave
		_, _ = fmt.Fprint(w, "complete, ", r.Context().Err()) // r.Context().Err() must be nil, because the shutdown does not end the request's context
	})
	ctx, stop := context.WithCancel(t.Context())
	served, answered := make(chan error, 1), make(chan string, 1)
	go func() { served <- boot.Serve(ctx, l, handler, slog.New(slog.DiscardHandler)) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		text, err := getBody(t, client, boot.URL(l))
		answered <- text + errorText(err)
	}()
	<-entered
	stop()
	require.Eventually(t, func() bool {
		c, err := new(http.Client).Get(boot.URL(l))
		if err == nil {
			_ = c.Body.Close()
		}
		return err != nil
	}, 5*time.Second, 5*time.Millisecond, "the server must refuse new connections during the shutdown")
	close(leave)
	require.Equal(t, "complete, <nil>", <-answered)
	require.NoError(t, <-served)
}

func requireBody(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	text, err := getBody(t, c, url)
	require.NoError(t, err)
	return text
}

func getBody(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := c.Do(r)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestListen_reportsTheFlagAndEnvironmentVariableOfTheAddress(t *testing.T) {
	t.Parallel()
	l, err := boot.Listen(t.Context(), "REELTALLY_LISTEN", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	_, err = boot.Listen(t.Context(), "REELTALLY_LISTEN", l.Addr().String())
	var inUse *boot.PortInUseError
	require.ErrorAs(t, err, &inUse)
	require.ErrorContains(t, err, l.Addr().String()+" is in use by another program: choose another address with --listen or REELTALLY_LISTEN")
	_, err = boot.Listen(t.Context(), "REELTALLY_LISTEN", "nonsense")
	require.ErrorContains(t, err, "nonsense")
	require.ErrorContains(t, err, "REELTALLY_LISTEN")
}

func TestMetrics_servesMetricsOnlyIfAnAddressIsSet(t *testing.T) {
	t.Parallel()
	registry := boot.NewRegistry()
	handler := boot.CountRequests(registry, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	api, err := boot.Listen(t.Context(), "", "127.0.0.1:0")
	require.NoError(t, err)
	out := boottest.NewOutput()
	metrics, err := boot.Metrics{MetricsListen: "127.0.0.1:0"}.Services(t.Context(), registry, nil, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	require.Len(t, metrics, 1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- boot.RunAll(ctx, append(metrics, func(ctx context.Context) error {
			return boot.Serve(ctx, api, handler, slog.New(slog.DiscardHandler))
		})...)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	requireBody(t, client, boot.URL(api))
	line := out.Await(t, time.Second, "serving metrics")
	text := requireBody(t, client, line[strings.Index(line, "http://"):])
	require.Contains(t, text, `reeltally_http_request_seconds_count{method="GET",status="418"} 1`)
	require.Contains(t, text, "reeltally_build_info{version=")
	require.Contains(t, text, "go_goroutines")
	stop()
	require.NoError(t, <-done)
	none, err := boot.Metrics{}.Services(t.Context(), registry, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestOpen_migratesSchemaOnlyIfCallerAllowsIt(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	open := func(t *testing.T, url string, m boot.Migration) error {
		t.Helper()
		st, err := databaseOf(url).Open(t.Context(), quiet, m)
		if err != nil {
			return err
		}
		return errors.Join(st.CheckSchema(t.Context()), st.Close())
	}
	t.Run("Open must create the schema of a new SQLite file", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, open(t, storetest.CreateEmptyDatabase(t, "sqlite"), boot.CreateSQLite))
	})
	t.Run("several programs must be able to open a new SQLite file at the same time", func(t *testing.T) {
		t.Parallel()
		url := storetest.CreateEmptyDatabase(t, "sqlite")
		errs := make(chan error)
		for range 4 {
			go func() { errs <- open(t, url, boot.MigrateSQLite) }()
		}
		for range 4 {
			require.NoError(t, <-errs)
		}
	})
	t.Run("with MigrateAny, Open must migrate an empty PostgreSQL database; with MigrateSQLite, Open must return an error", func(t *testing.T) {
		t.Parallel()
		url := storetest.CreateEmptyDatabase(t, "postgres")
		var schema *store.SchemaError
		err := open(t, url, boot.MigrateSQLite)
		require.ErrorAs(t, err, &schema)
		require.ErrorContains(t, err, "run `reeltally migrate`")
		require.NoError(t, open(t, url, boot.MigrateAny))
		require.NoError(t, open(t, url, boot.CreateSQLite))
	})
	t.Run("the error for an unsupported URL must not show the password", func(t *testing.T) {
		t.Parallel()
		err := open(t, "mysql://me:s3cret@host/db", boot.CreateSQLite)
		require.ErrorContains(t, err, "sqlite:PATH or postgres://")
		require.NotContains(t, err.Error(), "s3cret")
	})
}

// databaseOf returns settings with the given database URL and the defaults of all other settings.
func databaseOf(url string) boot.Database {
	const day = 24 * time.Hour
	return boot.Database{DatabaseURL: boot.Secret(url), MaxCollections: store.DefaultMaxCollections, RetentionDaily: storetest.DailyDays * day, RetentionWeekly: storetest.WeeklyDays * day}
}

// Requirements in docs/coverage.md: 11.8-08
func TestDatabase_refusesInvalidSettings(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for want, change := range map[string]func(*boot.Database){
		`--retention-daily (REELTALLY_RETENTION_DAILY) is "30d"; it must be a number of whole days, from 31d`:                                         func(d *boot.Database) { d.RetentionDaily = 30 * day },
		`--retention-daily (REELTALLY_RETENTION_DAILY) is "2161h"`:                                                                                    func(d *boot.Database) { d.RetentionDaily = 90*day + time.Hour },
		`--retention-weekly (REELTALLY_RETENTION_WEEKLY) is "40d"; it must be a number of whole days, from 90d (REELTALLY_RETENTION_DAILY) to 36500d`: func(d *boot.Database) { d.RetentionWeekly = 40 * day },
		`--max-collections (REELTALLY_MAX_COLLECTIONS) is "10001"; it must be from 1 to 10000`:                                                        func(d *boot.Database) { d.MaxCollections = 10_001 },
		`--max-collections (REELTALLY_MAX_COLLECTIONS) is "0"; it must be from 1 to 10000`:                                                            func(d *boot.Database) { d.MaxCollections = 0 },
	} {
		d := databaseOf(storetest.CreateEmptyDatabase(t, "sqlite"))
		change(&d)
		_, err := d.Open(t.Context(), slog.New(slog.DiscardHandler), boot.MigrateAny)
		require.ErrorContains(t, err, want)
	}
	d := databaseOf(storetest.CreateEmptyDatabase(t, "sqlite"))
	d.RetentionDaily = 180 * day
	st, err := d.Open(t.Context(), slog.New(slog.DiscardHandler), boot.MigrateAny)
	require.NoError(t, err)
	require.Equal(t, store.Retention{Daily: 180, Weekly: storetest.WeeklyDays}, st.Retention())
	require.NoError(t, st.Close())
}

func TestCheckBaseURL_refusesInvalidURLs(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"http://127.0.0.1:8080", "https://reeltally.example.com/path"} {
		require.NoError(t, boot.CheckBaseURL("REELTALLY_URL", value))
	}
	for value, shown := range map[string]string{"http://h/login?x=1": "http://h/login?x=1", "http://h?": "http://h?", "http://h#top": "http://h#top", "example.com": "example.com", "ftp://h": "ftp://h",
		"http://user:s3cret@host": "http://(hidden)@host", "http://user:s3%cret@host": "http://(hidden)@host", "user:s3cret@host": "(hidden)@host"} {
		err := boot.CheckBaseURL("REELTALLY_URL", value)
		require.ErrorAs(t, err, new(boot.UsageError))
		require.EqualError(t, err, fmt.Sprintf("--url (REELTALLY_URL) is %q; it must be an http or https URL without user, password, query and fragment, for example https://reeltally.example.com", shown))
	}
}

func TestMetrics_needAnotherAddressThanTheAPI(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"127.0.0.1:8080", "127.0.0.1:8080"}, {":8080", "127.0.0.1:8080"}, {"127.0.0.1:8080", "0.0.0.0:8080"}, {"[::]:8080", ":8080"}} {
		err := boot.Metrics{MetricsListen: pair[0]}.CheckAddress(pair[1])
		require.ErrorAs(t, err, new(boot.UsageError))
		require.ErrorContains(t, err, "REELTALLY_METRICS_LISTEN")
		require.ErrorContains(t, err, "REELTALLY_LISTEN")
	}
	for _, pair := range [][2]string{{"", ":8080"}, {"127.0.0.1:0", "127.0.0.1:0"}, {"127.0.0.1:9100", "127.0.0.1:8080"}, {"127.0.0.2:8080", "127.0.0.1:8080"}, {":8080", ""}} {
		require.NoError(t, boot.Metrics{MetricsListen: pair[0]}.CheckAddress(pair[1]))
	}
}

func TestMetrics_needAnAddressWithAPort(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"localhost", "127.0.0.1", "[::1]"} {
		err := boot.Metrics{MetricsListen: address}.CheckAddress(":8080")
		require.ErrorAs(t, err, new(boot.UsageError))
		require.EqualError(t, err, fmt.Sprintf("--metrics-listen (REELTALLY_METRICS_LISTEN) is %q; it must be HOST:PORT, for example 127.0.0.1:9091", address))
	}
}
