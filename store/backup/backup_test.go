package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backup"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func ignoreProgress(int64, int64) {}

// writeBackup writes a backup of a database and returns the bytes of the file.
func writeBackup(t *testing.T, s *store.Store) ([]byte, backup.Summary) {
	t.Helper()
	var out bytes.Buffer
	summary, err := backup.Write(t.Context(), s, "v1.2.3", &out, ignoreProgress)
	require.NoError(t, err)
	return out.Bytes(), summary
}

// backupText decompresses a backup and returns its lines.
func backupText(t *testing.T, backup []byte) string {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(backup))
	require.NoError(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(content)
}

// compressLines returns a backup that consists of the given lines, compressed.
func compressLines(t *testing.T, lines string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	_, err = io.WriteString(w, lines)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// fillAllTables writes rows of two organisations to a database. Some of the values are difficult to copy exactly, such as the largest integer and texts
// with control characters.
func fillAllTables(t *testing.T, db *storetest.DB) *store.Org {
	t.Helper()
	ctx := t.Context()
	o := storetest.CreateOrgWithData(t, db)
	storetest.CreateOrgWithData(t, db)
	videos := storetest.ListVideos(t, o, storetest.OrderedBy("created_at", true)).Rows
	for i, v := range videos {
		title := []string{"Größe \"日本\" 🐶\u2028\\ \x01 <b>&", "", strings.Repeat("x", 3000)}[i%3]
		db.Exec(t, "UPDATE videos SET title = ?, latest_views = ?, increase_1d = ?, outlier_multiplier = ? WHERE organisation_id = ? AND id = ?",
			title, []int64{1<<63 - 1, 0, -1 << 53}[i%3], []float64{0.1, 1e300, -5e-324}[i%3], 3.0, o.ID(), v.ID)
	}
	older, newer := storetest.Collection(t, o, "Older", nil), storetest.Collection(t, o, "Newer", nil)
	_, err := o.UpdateCollection(ctx, older.ID, store.CollectionPatch{Parent: &store.Change[uuid.UUID]{To: &newer.ID}}) // the child has a smaller id than its parent
	require.NoError(t, err)
	return o
}

// restoreBackup restores a backup into a database. It opens the database without storetest.Guard, because the Guard would refuse the statements
// of Restore, which write the rows of all organisations.
func restoreBackup(t *testing.T, db *storetest.DB, file []byte) (backup.Summary, error) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	return backup.Restore(t.Context(), s, bytes.NewReader(file), ignoreProgress)
}

func TestRestore_restoresEveryRowOnBothEngines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.FillEmptyTables(t, db, fillAllTables(t, db))
		file, written := writeBackup(t, db.Store)
		require.NotContains(t, backupText(t, file), `"rows":0}`, "every table must have rows")
		checked, err := backup.Check(bytes.NewReader(file), ignoreProgress)
		require.NoError(t, err)
		require.Equal(t, written, checked)
		for _, engine := range storetest.Engines {
			restored := storetest.NewEmpty(t, engine)
			read, err := restoreBackup(t, restored, file)
			require.NoError(t, err, engine)
			require.Equal(t, written, read, engine)
			again, second := writeBackup(t, restored.Store)
			_, before, _ := strings.Cut(backupText(t, file), "\n")
			_, after, _ := strings.Cut(backupText(t, again), "\n")
			require.Equal(t, before, after, engine)
			require.Equal(t, written.SHA256, second.SHA256)
			require.NoError(t, restored.CheckSchema(t.Context()))
		}
	})
}

func TestWrite_leavesOutTheTimeOfTheLastBackup(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		_, before := writeBackup(t, db.Store)
		known, err := db.LastBackup(t.Context())
		require.NoError(t, err)
		require.Nil(t, known)
		for range 2 {
			require.NoError(t, db.RecordBackup(t.Context()))
			known, err = db.LastBackup(t.Context())
			require.NoError(t, err)
			require.Equal(t, db.Clock.Now().UTC().Truncate(time.Second), known.UTC())
			db.Clock.Advance(time.Hour)
		}
		file, after := writeBackup(t, db.Store)
		require.Equal(t, before.SHA256, after.SHA256)
		restored := storetest.NewEmpty(t, db.Engine)
		_, err = restoreBackup(t, restored, file)
		require.NoError(t, err)
		known, err = restored.LastBackup(t.Context())
		require.NoError(t, err)
		require.Nil(t, known)
	})
}

// Other transactions track videos while backups are written. In each backup, the number of videos
// in the totals must equal the number of video rows.
func TestWrite_writesTheStateOfOneMoment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		storetest.Track(t, o, storetest.VideoLinks(t, 20)...)
		ctx, stop := context.WithCancel(t.Context())
		writers, ctx := errgroup.WithContext(ctx)
		committed := make(chan struct{}, 1000)
		for w := range 2 {
			other := db.Open(t).Org(o.ID())
			writers.Go(func() error {
				for i := 0; ctx.Err() == nil; i++ {
					l, err := link.Parse(fmt.Sprintf("https://www.tiktok.com/@writer/video/7%02d%016d", w, i))
					if err != nil {
						return err
					}
					if _, err := other.Track(ctx, store.TrackRequest{Links: []link.Link{l}}); err != nil && ctx.Err() == nil {
						return err
					}
					select {
					case committed <- struct{}{}:
					default:
					}
				}
				return nil
			})
		}
		for range 5 {
			for len(committed) > 0 {
				<-committed
			}
			select {
			case <-committed: // other transactions are committed between two backups
			case <-ctx.Done():
				require.NoError(t, writers.Wait(), "a writer failed")
			}
			file, _ := writeBackup(t, db.Store)
			restored := storetest.NewEmpty(t, "sqlite")
			_, err := restoreBackup(t, restored, file)
			require.NoError(t, err)
			counts := storetest.Column[int64](t, restored, "SELECT videos - (SELECT COUNT(*) FROM videos) FROM organisation_totals UNION ALL SELECT COUNT(*) - (SELECT COUNT(*) FROM videos) FROM fetch_targets")
			require.Equal(t, []int64{0, 0}, counts)
		}
		stop()
		require.NoError(t, writers.Wait())
	})
}

func TestRestore_refusesADamagedBackupAndInsertsNothing(t *testing.T) {
	t.Parallel()
	source := storetest.New(t, "sqlite")
	fillAllTables(t, source)
	file, _ := writeBackup(t, source.Store)
	content := backupText(t, file)
	lines := strings.SplitAfter(content, "\n")
	damagedFiles := map[string][]byte{
		"an empty file":                                       nil,
		"the first bytes of a ZIP file":                       []byte("PK\x03\x04"),
		"a compressed CSV file":                               compressLines(t, "link,views\n"),
		"a backup truncated after half of its bytes":          file[:len(file)/2],
		"a backup without its last byte":                      file[:len(file)-1],
		"a backup followed by a second compressed text":       slices.Concat(file, compressLines(t, "{}\n")),
		"a backup without its last line":                      compressLines(t, strings.Join(lines[:len(lines)-2], "")),
		"a backup with a changed count":                       compressLines(t, strings.Replace(content, "9223372036854775807", "9223372036854775806", 1)),
		"a backup with a text in place of a count":            compressLines(t, strings.Replace(content, "9223372036854775807", `"1"`, 1)),
		"a backup without one of its rows":                    compressLines(t, strings.Join(slices.Delete(slices.Clone(lines), 2, 3), "")),
		"a backup with a table that the schema does not have": compressLines(t, strings.Replace(content, `{"table":"videos"`, `{"table":"pg_authid"`, 1)),
		"a backup with a column that the table does not have": compressLines(t, strings.Replace(content, `"name":"username"`, `"name":"user"`, 1)),
		"a backup with a line that is not valid JSON":         compressLines(t, strings.Replace(content, "[", "[[", 1)),
	}
	flipped := slices.Clone(file)
	flipped[len(flipped)/3] ^= 4
	damagedFiles["a backup with one changed bit"] = flipped
	for _, engine := range storetest.Engines {
		db := storetest.NewEmpty(t, engine)
		for name, bad := range damagedFiles {
			_, err := restoreBackup(t, db, bad)
			require.ErrorAs(t, err, new(*backup.DamagedError), "%s: %v", name, err)
			if name != "a backup with a table that the schema does not have" && name != "a backup with a column that the table does not have" { // only Restore compares the tables and columns with the database
				_, err = backup.Check(bytes.NewReader(bad), ignoreProgress)
				require.ErrorAs(t, err, new(*backup.DamagedError), name)
			}
		}
		_, err := restoreBackup(t, db, file)
		require.NoError(t, err, "a refused backup must leave the database empty")
	}
}

func TestRestore_refusesADatabaseWithRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		storetest.NewOrg(t, db)
		file, _ := writeBackup(t, db.Store)
		_, err := restoreBackup(t, db, file)
		require.ErrorContains(t, err, "the database is not empty: the table \"organisations\" has rows")
	})
}

func TestRestore_doesNotMigrateAnOlderDatabaseWithRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		file, _ := writeBackup(t, db.Store)
		old := storetest.NewEmpty(t, db.Engine)
		_, err := old.DB().MigrateTo(t.Context(), 21)
		require.NoError(t, err)
		old.Exec(t, "INSERT INTO collectors (id, seen_at, serves) VALUES (?, 5, 'tiktok')", store.NewID())
		_, err = restoreBackup(t, old, file)
		require.ErrorContains(t, err, "the database is not empty: the table \"collectors\" has rows")
		have, _, err := old.Schema(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 21, have)
	})
}

func TestRestore_reportsWhyTheFirstAttemptFailed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "postgres") // on SQLite, the store retries a transaction only if another process has locked the file
	storetest.NewOrg(t, db)
	file, _ := writeBackup(t, db.Store)
	restored := storetest.New(t, "postgres")
	restored.Exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a simulated conflict' USING ERRCODE = '40001'; END $$`)
	restored.Exec(t, "CREATE TRIGGER refuse BEFORE INSERT ON organisations FOR EACH ROW EXECUTE FUNCTION refuse()")
	_, err := restoreBackup(t, restored, file)
	require.ErrorContains(t, err, "a simulated conflict")
	require.ErrorContains(t, err, "restore again into a new database that no other program uses")
	require.Zero(t, storetest.Column[int64](t, restored, "SELECT COUNT(*) FROM organisations")[0])
}

func TestRestore_migratesAnOlderBackupAndRefusesANewerOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		old := storetest.NewEmpty(t, db.Engine)
		_, err := old.DB().MigrateTo(t.Context(), 21) // the next migration adds columns to the table collectors
		require.NoError(t, err)
		old.Exec(t, "INSERT INTO collectors (id, seen_at, serves) VALUES (?, 5, 'tiktok')", store.NewID())
		file, written := writeBackup(t, old.Store)
		require.EqualValues(t, 21, written.Schema)
		restored := storetest.NewEmpty(t, db.Engine)
		_, err = restoreBackup(t, restored, file)
		require.NoError(t, err)
		require.NoError(t, restored.CheckSchema(t.Context()))
		require.Equal(t, []string{"tiktok"}, storetest.Column[string](t, restored, "SELECT serves FROM collectors"))

		_, err = restoreBackup(t, storetest.New(t, db.Engine), file)
		require.ErrorContains(t, err, "the backup has version 21: restore into a new database")
		newer := compressLines(t, strings.Replace(backupText(t, file), `"schema":21`, `"schema":2000`, 1))
		_, err = restoreBackup(t, storetest.NewEmpty(t, db.Engine), newer)
		require.ErrorAs(t, err, new(*store.SchemaError))
		other := compressLines(t, strings.Replace(backupText(t, file), `"version":1`, `"version":2`, 1))
		_, err = backup.Check(bytes.NewReader(other), ignoreProgress)
		require.ErrorContains(t, err, "use ReelTally v1.2.3, which wrote the backup")
	})
}

func TestWrite_refusesATextThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite") // this test runs only on SQLite, because PostgreSQL refuses such a text
	db.Exec(t, "INSERT INTO short_links (platform, code, target, resolved_at) VALUES ('tiktok', 'a', CAST(x'ff' AS text), 1)")
	_, err := backup.Write(t.Context(), db.Store, "v1", io.Discard, ignoreProgress)
	require.ErrorContains(t, err, `back up table short_links: column target: the text "\xff" is not valid UTF-8`)
}

// FuzzCheck checks that no file makes Check panic.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"format":"reeltally-backup","version":1,"rows":1}` + "\n" + `{"table":"videos","columns":[{"name":"id","kind":"integer"}]}` + "\n[1]\n" + `{"end":"videos","rows":1}` + "\n"))
	f.Add([]byte(`{"format":"reeltally-backup","version":1}` + "\n" + `{"end":"backup","rows":0,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}` + "\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		if _, err := backup.Check(bytes.NewReader(compressLines(t, string(lines))), ignoreProgress); err != nil {
			return
		}
		require.Contains(t, string(lines), "reeltally-backup")
	})
}
