package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// instance is a ReelTally server with its filled database. The benchmark also uses the database
// directly, through the field store.
type instance struct {
	bin            string
	url            string // URL of the database
	address        string // base URL of the server
	metricsAddress string // base URL of the server's metrics and profiles
	server         *exec.Cmd
	store          *store.Store
	clock          atomic.Int64 // the time that store uses as the current time, in microseconds since 1970; nextBatch sets it to future days

	large   *organisation // the organisation whose data the requests read
	small   *organisation // an organisation that was seeded with a tenth as many videos as the organisation in the field "large"; nil on SQLite
	changed *organisation // the organisation whose data the benchmark changes
	// The list "others" contains further organisations. Each organisation in the list has as many videos as the organisation in the field
	// "changed". On SQLite, the list is empty.
	others []*organisation
}

// organisation is one of the organisations that the benchmark creates in the database of an instance. It has a token for requests.
type organisation struct {
	id     uuid.UUID
	token  string
	videos int      // number of videos before the first measurement
	many   int      // number of videos that addManyVideos added; they have the username manyHandle and are in the collection manyCollection
	old    []string // ids of videos with the longest histories
}

// openStore migrates the database and opens its store.
func (i *instance) openStore(ctx context.Context) (err error) {
	if _, err := i.outputOf(ctx, "reeltally", "migrate"); err != nil {
		return err
	}
	i.clock.Store(time.Now().UnixMicro())
	i.store, err = store.Open(ctx, store.Options{URL: i.url, Now: func() time.Time { return time.UnixMicro(i.clock.Load()) }})
	return err
}

func (i *instance) close() {
	if i.server != nil && i.server.Process != nil {
		_ = i.server.Process.Signal(os.Interrupt)
		_ = i.server.Wait()
	}
	if i.store != nil {
		_ = i.store.Close()
	}
}

// newCommand returns a command that runs a program on the database of the instance. The program is given by its path, or by its name in the
// folder i.bin.
func (i *instance) newCommand(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	if filepath.Base(program) == program {
		program = filepath.Join(i.bin, program)
	}
	c := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // the folder is an argument of the developer
	c.Env = append(os.Environ(), "REELTALLY_DATABASE_URL="+i.url, "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_METRICS_LISTEN=127.0.0.1:0",
		"REELTALLY_TIER_LIMITS=premium.authenticate=1000000,premium.read=1000000,premium.write=1000000") // rate limits that are too high for the benchmark to reach
	return c
}

// outputOf runs a program on the database of the instance and returns the program's standard output. If the program fails, the error contains
// its standard error.
func (i *instance) outputOf(ctx context.Context, program string, arguments ...string) ([]byte, error) {
	out, err := i.newCommand(ctx, program, arguments...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s %s: %s", program, strings.Join(arguments, " "), exit.Stderr)
	}
	return out, err
}

// seedOrganisations creates organisations, and a token for each. Each organisation gets the given number of made-up videos, whose histories
// have up to the given number of days.
func (i *instance) seedOrganisations(ctx context.Context, orgs, videos, days int) ([]*organisation, error) {
	arguments := []string{"seed", fmt.Sprint("--orgs=", orgs), fmt.Sprint("--videos=", videos), fmt.Sprint("--days=", days), "--json"}
	fmt.Fprintln(os.Stderr, "reeltally", strings.Join(arguments, " "))
	out, err := i.outputOf(ctx, "reeltally", arguments...)
	if err != nil {
		return nil, err
	}
	var made []*organisation
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var line struct {
			ID uuid.UUID `json:"organisation_id"`
		}
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		out, err := i.outputOf(ctx, "reeltally", "token", "create", "--org="+line.ID.String(), "--name=bench", "--json")
		if err != nil {
			return nil, err
		}
		var token struct{ Token string }
		if err := json.Unmarshal(out, &token); err != nil {
			return nil, err
		}
		made = append(made, &organisation{id: line.ID, token: token.Token, videos: videos})
	}
	return made, nil
}

// These constants are the handle of the account and the name of the collection that addManyVideos creates.
const manyHandle, manyCollection = "bench.many", "Bench many"

// addManyVideos adds a TikTok account with up to 6,000 copies of existing videos, and puts these
// copies into a collection.
func (i *instance) addManyVideos(ctx context.Context, o *organisation) error {
	org := i.store.Org(o.id)
	list, err := org.ListVideos(ctx, store.VideoQuery{WithoutTotal: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
	if err != nil {
		return err
	}
	// The other accounts have at most 30 videos, which are too few for the benchmark.
	o.many = min(6000, o.videos*6/10)
	now := store.Instant(i.clock.Load())
	collection := store.NewID()
	account := backfill.SeedAccount{Account: store.Account{ID: store.NewID(), Platform: link.TikTok, ExternalID: new("1" + fmt.Sprint(now)), Username: manyHandle,
		HandleCurrent: true, Link: link.AccountURL(link.TikTok, manyHandle), CreatedAt: now}}
	for n := range o.many {
		v := list.Rows[n%len(list.Rows)]
		v.ID, v.Platform, v.ExternalID, v.Username = store.NewID(), link.TikTok, tiktokID(n), manyHandle
		v.Link = tiktokLink(manyHandle, v.ExternalID)
		account.Videos = append(account.Videos, backfill.SeedVideo{Video: v, Collections: []uuid.UUID{collection},
			Points: []backfill.Point{{At: now, Counts: v.Latest}}})
	}
	o.videos += o.many
	return backfill.Seed(ctx, org, backfill.SeedBatch{Source: store.SandboxSource, Accounts: []backfill.SeedAccount{account},
		Collections: []backfill.SeedCollection{{ID: collection, Name: manyCollection, CreatedAt: now}}})
}

// tiktokID returns a valid id of the nth TikTok video. Such an id contains the upload time in seconds, in its upper 32 bits.
func tiktokID(n int) string { return fmt.Sprint((1_700_000_000+int64(n))<<32 | int64(n)) }

func tiktokLink(handle, id string) string {
	return fmt.Sprintf("https://www.tiktok.com/@%s/video/%s", handle, id)
}

// startServer starts a ReelTally server and waits until the server logs its address, which startServer stores in i.address.
func (i *instance) startServer(ctx context.Context) error {
	i.server = i.newCommand(ctx, "server")
	stderr, err := i.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := i.server.Start(); err != nil {
		return err
	}
	lines := json.NewDecoder(stderr)
	for {
		var line struct{ Msg, Address string }
		if err := lines.Decode(&line); err != nil {
			return fmt.Errorf("the server did not start: %w", err)
		}
		switch line.Msg {
		case "serving metrics":
			i.metricsAddress = strings.TrimSuffix(line.Address, "/metrics")
		case "serving":
			i.address = line.Address
			go func() { _, _ = io.Copy(io.Discard, io.MultiReader(lines.Buffered(), stderr)) }()
			return nil
		}
	}
}
