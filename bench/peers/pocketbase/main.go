// Command pocketbase runs PocketBase with the videos of one organisation. The benchmark compares ReelTally with it. When the command starts, it
// copies the videos from ReelTally's database in REELTALLY_DATABASE_URL into its own SQLite database, with an index for the list. Then it prints
// its address.
//
// The command is a separate Go module, so that ReelTally does not depend on PocketBase.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations" // PocketBase's own migrations
)

// These are the columns of a video that ReelTally's API returns, grouped by their type in PocketBase. PocketBase stores dates as text.
var (
	texts = []string{"organisation_id", "platform", "link", "username", "linked_account_id", "uploaded_at", "song_name", "song_link", "video_length", "title",
		"ad_product_id_shop", "fetch_status", "fetch_reason"}
	booleans = []string{"removed", "not_safe", "private", "hidden_stats", "ad_info_shop", "ad_is_ad"}
	numbers  = []string{"created_at", "latest_views", "latest_likes", "latest_comments", "latest_bookmarks", "latest_shares", "latest_engagement", "latest_updated_at",
		"outlier_multiplier", "increase_1d", "increase_7d", "increase_14d", "increase_30d", "views_gained_7d", "last_attempt_at", "next_fetch_at"}
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pocketbase ORGANISATION_ID EMPTY_FOLDER")
		os.Exit(2)
	}
	if err := serveVideos(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pocketbase:", err)
		os.Exit(1)
	}
}

// serveVideos copies the videos of an organisation into a new database, and serves them until the process is killed.
func serveVideos(organisation, folder string) error {
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: folder, EncryptionEnv: "NOT_SET"})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	if err := createCollection(app); err != nil {
		return err
	}
	if err := copyVideos(app, organisation); err != nil {
		return err
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) (err error) {
		e.InstallerFunc = nil
		if e.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		fmt.Println("http://" + e.Listener.Addr().String())
		return e.Next()
	})
	return apis.Serve(app, apis.ServeConfig{HttpAddr: "127.0.0.1:0"})
}

// createCollection creates a collection of PocketBase for the videos. Every caller may list it.
func createCollection(app core.App) error {
	c := core.NewBaseCollection("videos")
	c.ListRule = new(string)
	for _, name := range texts {
		c.Fields.Add(&core.TextField{Name: name})
	}
	for _, name := range booleans {
		c.Fields.Add(&core.BoolField{Name: name})
	}
	for _, name := range numbers {
		c.Fields.Add(&core.NumberField{Name: name})
	}
	c.AddIndex("videos_created", false, "organisation_id, created_at DESC, id DESC", "")
	return app.Save(c)
}

// copyVideos copies the videos of an organisation from the PostgreSQL database of ReelTally into PocketBase, in one transaction.
func copyVideos(app core.App, organisation string) error {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, os.Getenv("REELTALLY_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }()
	var columns []string
	for _, name := range texts {
		columns = append(columns, "COALESCE("+name+"::text, '') AS "+name)
	}
	for _, name := range numbers {
		columns = append(columns, "COALESCE("+name+", 0) AS "+name)
	}
	columns = append(columns, booleans...)
	rows, err := db.Query(ctx, "SELECT replace(id::text, '-', '') AS id, "+strings.Join(columns, ", ")+" FROM videos WHERE organisation_id = $1", organisation)
	if err != nil {
		return err
	}
	defer rows.Close()
	return app.RunInTransaction(func(tx core.App) error {
		for rows.Next() {
			row, err := pgx.RowToMap(rows)
			if err != nil {
				return err
			}
			if _, err := tx.DB().Insert("videos", dbx.Params(row)).Execute(); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
