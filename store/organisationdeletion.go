package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// The deletion of an organisation has three steps:
//
//  1. One short transaction closes the organisation: see closeOrganisation. From then on, its tokens and share pages do not work, and no other
//     transaction can write its data: see db.CloseOrganisation.
//  2. Many short transactions delete the rows of the organisation.
//  3. One short transaction deletes the tokens and the organisation itself.
//
// If the deletion is interrupted, the next call of DeleteOrganisation continues it. Its rows are in all tables that have the column
// organisation_id, or the column token_id with the id of a token of the organisation. The names of these tables are read from the database.

const (
	organisationColumn = "organisation_id"
	tokenColumn        = "token_id"

	// deletionBatch is the maximum number of rows that one statement of DeleteOrganisation deletes from a distributed table, without the rows that
	// the database deletes because of foreign keys. The exception is the table of collections.
	deletionBatch = 2000
)

// OrganisationSize says how much data DeleteOrganisation would delete.
type OrganisationSize struct {
	Videos      int64 // number of videos, including stopped videos
	Accounts    int64 // number of accounts, including stopped accounts and accounts that are only linked to videos
	Collections int64
	Reports     int64
	Tokens      int64 // number of tokens, including expired and revoked tokens
}

// OrganisationSize counts the data of an organisation. For an unknown organisation, it returns zeros.
func (s *Store) OrganisationSize(ctx context.Context, id uuid.UUID) (size OrganisationSize, err error) {
	for table, count := range map[string]*int64{"videos": &size.Videos, "accounts": &size.Accounts, "collections": &size.Collections,
		"reports": &size.Reports, "api_tokens": &size.Tokens} {
		if err := db.Scoped(s.db.Read(ctx), table, id).Count(count).Error; err != nil {
			return size, db.Translate(err)
		}
	}
	return size, nil
}

// DeleteOrganisation deletes an organisation and all its rows in many short transactions. After each of them, it calls progress with the number of
// rows that were deleted so far. After an error, the next call continues. DeleteOrganisation returns ErrNotFound for an unknown organisation.
func (s *Store) DeleteOrganisation(ctx context.Context, id uuid.UUID, progress func(rows int64)) error {
	if err := s.closeOrganisation(ctx, id); err != nil {
		return err
	}
	var deleted int64
	addDeleted := func(n int64) error {
		deleted += n
		progress(deleted)
		return ctx.Err()
	}
	if err := s.Queue.DeleteSubscriptions(ctx, id, addDeleted); err != nil {
		return err
	}
	tables, err := s.db.StoredTables(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(tables) // now each table comes before the tables to which its foreign keys refer
	for _, table := range tables {
		if db.Tables[table.Name].Class != db.Distributed {
			continue
		}
		if err := s.deleteRowsOfOrganisation(ctx, table, id, addDeleted); err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	return s.deleteEmptyOrganisation(ctx, tables, id)
}

// deletedOrganisationError converts the error of a foreign key to ErrOrganisationDeleted. It is for transactions that do not raise the organisation's
// version, and in which only the organisation can be missing.
func deletedOrganisationError(err error) error {
	if db.IsForeignKeyViolation(err) {
		return ErrOrganisationDeleted
	}
	return err
}

// closeOrganisation marks an organisation as being deleted. It waits for transactions that are writing the organisation's data. No server sends to
// the organisation's webhooks any more.
func (s *Store) closeOrganisation(ctx context.Context, id uuid.UUID) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		if err := db.CloseOrganisation(tx, id); err != nil {
			return err
		}
		marked := tx.Exec("UPDATE organisations SET deleting_since = COALESCE(deleting_since, ?) WHERE id = ?", s.db.Now(), id)
		if marked.Error == nil && marked.RowsAffected == 0 {
			return db.NotFound("organisation", id.String())
		}
		if marked.Error != nil {
			return marked.Error
		}
		return tx.Exec("DELETE FROM webhook_queue WHERE organisation_id = ?", id).Error
	})
}

// deleteRowsOfOrganisation deletes the organisation's rows of a distributed table in batches, in the order of the primary key. It starts each batch
// after the last one, because the database may read deleted rows again until it has cleaned them up. It calls addDeleted with the number of rows of
// each batch, and stops if addDeleted fails.
func (s *Store) deleteRowsOfOrganisation(ctx context.Context, table db.StoredTable, org uuid.UUID, addDeleted func(int64) error) error {
	key := slices.DeleteFunc(table.PrimaryKey(), func(c db.StoredColumn) bool { return c.Name == organisationColumn })
	var names, places []string
	for _, c := range key {
		names, places = append(names, c.Name), append(places, "?")
	}
	columns, values := "("+strings.Join(names, ", ")+")", "("+strings.Join(places, ", ")+")"
	for after := []any(nil); ; {
		batch, args := "organisation_id = ?", []any{org}
		if after != nil {
			batch, args = batch+" AND "+columns+" > "+values, append(args, after...)
		}
		// Collections refer to their parents, so one statement deletes all of them. The tables whose only key is the organisation have one row.
		var last []any
		if table.Name != "collections" && len(key) > 0 {
			var err error
			if last, err = s.lastKeyOfBatch(ctx, table.Name, key, batch, args); err != nil {
				return err
			}
		}
		if last != nil {
			batch, args = batch+" AND "+columns+" <= "+values, append(args, last...)
		}
		var pictures map[link.Platform][]string
		if table.Name == "videos" {
			var err error
			if pictures, err = s.unusedPictures(ctx, org, batch, args); err != nil {
				return err
			}
		}
		var n int64
		err := s.db.Tx(ctx, func(tx *gorm.DB) error {
			if err := db.CloseOrganisation(tx, org); err != nil {
				return err
			}
			if err := deletePictures(tx, pictures); err != nil {
				return err
			}
			done := tx.Exec("DELETE FROM "+table.Name+" WHERE "+batch, args...)
			n = done.RowsAffected
			return done.Error
		})
		if err != nil {
			return err
		}
		if err := addDeleted(n); err != nil {
			return err
		}
		if last == nil {
			return nil
		}
		after = last
	}
}

// lastKeyOfBatch returns the primary key, without the organisation, of row number deletionBatch among the rows that match the condition. It returns nil
// if fewer rows match.
func (s *Store) lastKeyOfBatch(ctx context.Context, table string, key []db.StoredColumn, condition string, args []any) (last []any, err error) {
	names := make([]string, len(key))
	for i, c := range key {
		names[i] = c.Name
	}
	columns := strings.Join(names, ", ")
	query := s.db.Read(ctx).Raw("SELECT "+columns+" FROM "+table+" WHERE "+condition+" ORDER BY "+columns+" LIMIT 1 OFFSET ?", append(slices.Clip(args), deletionBatch-1)...)
	return last, s.db.EachRow(ctx, query, func(row *db.Values) error {
		last = make([]any, len(key))
		for i, c := range key {
			if last[i], err = c.ToInsertable(c.Value(row, i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// picture is the key of a row in the table thumbnails.
type picture struct {
	Platform   link.Platform
	ExternalID string
}

// unsubscribedPicture is a SQL condition on a row of thumbnails: no organisation fetches the video.
var unsubscribedPicture = fmt.Sprintf(`NOT EXISTS (SELECT 1 FROM fetch_subscriptions s
 WHERE s.bucket = %d AND s.source = thumbnails.platform AND s.kind = '%s' AND s.external_id = thumbnails.external_id)`, queue.Bucket, queue.KindVideo)

// unusedPictures returns the pictures of those videos of a batch that no other organisation has, by platform. The condition selects the videos of the
// batch.
func (s *Store) unusedPictures(ctx context.Context, org uuid.UUID, condition string, args []any) (map[link.Platform][]string, error) {
	tx := s.db.Read(ctx)
	var own, unused []picture
	if err := tx.Raw("SELECT platform, external_id FROM videos WHERE "+condition, args...).Find(&own).Error; err != nil {
		return nil, db.Translate(err)
	}
	list, values := withPictures(tx, own)
	err := tx.Raw(list+`SELECT thumbnails.platform, thumbnails.external_id FROM wanted CROSS JOIN thumbnails
 WHERE thumbnails.platform = wanted.platform AND thumbnails.external_id = wanted.external_id AND `+unsubscribedPicture, values...).Find(&unused).Error
	if err != nil {
		return nil, db.Translate(err)
	}
	// Other organisations can have these videos without fetching them: their tracking was stopped, or they are pending.
	var others []uuid.UUID
	if err := tx.Raw("SELECT id FROM organisations WHERE id <> ? ORDER BY id", org).Scan(&others).Error; err != nil {
		return nil, db.Translate(err)
	}
	for _, other := range others {
		if len(unused) == 0 {
			break
		}
		list, values := withPictures(tx, unused)
		var used []picture
		err := tx.Raw(list+`SELECT v.platform, v.external_id FROM wanted CROSS JOIN videos v
 WHERE v.organisation_id = ? AND v.platform = wanted.platform AND v.external_id = wanted.external_id`, append(values, other)...).Find(&used).Error
		if err != nil {
			return nil, db.Translate(err)
		}
		unused = slices.DeleteFunc(unused, func(p picture) bool { return slices.Contains(used, p) })
	}
	byPlatform := map[link.Platform][]string{}
	for _, p := range unused {
		byPlatform[p.Platform] = append(byPlatform[p.Platform], p.ExternalID)
	}
	return byPlatform, nil
}

// withPictures returns a WITH clause with the list "wanted" of the pictures, and its arguments.
func withPictures(tx *gorm.DB, pictures []picture) (list string, args []any) {
	rows := make([][]any, len(pictures))
	for i, p := range pictures {
		rows[i] = []any{p.Platform, p.ExternalID}
	}
	return db.WithRows(tx, "wanted", []string{"platform text", "external_id text"}, rows)
}

// deletePictures deletes pictures, except those of videos that an organisation tracks now.
func deletePictures(tx *gorm.DB, pictures map[link.Platform][]string) error {
	for platform, ids := range pictures {
		if err := tx.Exec("DELETE FROM thumbnails WHERE platform = ? AND external_id IN ? AND "+unsubscribedPicture, platform, ids).Error; err != nil {
			return err
		}
	}
	return nil
}

// deleteEmptyOrganisation deletes an organisation that has no rows in distributed tables, its tokens, and its rows in all other tables.
func (s *Store) deleteEmptyOrganisation(ctx context.Context, tables []db.StoredTable, org uuid.UUID) error {
	return s.db.Tx(ctx, func(tx *gorm.DB) error {
		// With this lock, no other transaction can add a row that refers to the organisation, such as a token.
		var locked []uuid.UUID
		if err := tx.Raw("SELECT id FROM organisations WHERE id = ?"+db.ForUpdateClause(tx, "organisations"), org).Scan(&locked).Error; err != nil {
			return err
		}
		var tokens []uuid.UUID
		if err := tx.Raw("DELETE FROM api_tokens WHERE organisation_id = ? RETURNING id", org).Scan(&tokens).Error; err != nil {
			return err
		}
		for _, table := range tables {
			if table.HasColumn(tokenColumn) {
				for chunk := range slices.Chunk(tokens, db.InsertChunk) {
					if err := tx.Exec("DELETE FROM "+table.Name+" WHERE "+tokenColumn+" IN ?", chunk).Error; err != nil {
						return err
					}
				}
			}
			if table.HasColumn(organisationColumn) && db.Tables[table.Name].Class != db.Distributed {
				if err := tx.Exec("DELETE FROM "+table.Name+" WHERE "+organisationColumn+" = ?", org).Error; err != nil {
					return err
				}
			}
		}
		return tx.Exec("DELETE FROM organisations WHERE id = ?", org).Error
	})
}
