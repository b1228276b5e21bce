package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// MaxReports is the highest number of reports of an organisation.
const MaxReports = 1000

// maxDocumentAttempts is the maximum number of times that CreateReport makes the document of a report. It must not be greater than db.MaxAttempts.
const maxDocumentAttempts = 3

// Report is a report of a collection. Only its Sharing can change. A report is kept when its collection is deleted.
type Report struct {
	OrganisationID  uuid.UUID `gorm:"primaryKey"`
	ID              uuid.UUID `gorm:"primaryKey"`
	Number          int64     // 1 for the organisation's first report, 2 for its second, and so on
	CollectionID    uuid.UUID
	CollectionName  string // name of the collection when the report was made
	IncludeChildren bool
	StartDate       db.Date
	EndDate         db.Date
	// ContinuesReportID is the id of the earlier report that this report continues: this report begins with the views at the end of the earlier report. It
	// is nil if the report continues no report.
	ContinuesReportID *uuid.UUID
	OverlapsJSON      *string    // JSON of the earlier reports that count the same views; see ListOverlaps
	CreatedBy         uuid.UUID  // id of the API token with which the report was made
	CreatedAt         db.Instant `gorm:"autoCreateTime:false"`
	Checksum          string     // SHA-256 of the document, in hexadecimal digits
	Bytes             int64      // size of the document
	Sharing                      // the share page of the report
}

// reportRow is a row of reports: a report with its compressed document.
type reportRow struct {
	Report
	// GainedDays and FirstGainDate are the results of encodeGainedDays. They are nil if the report was made by a version of ReelTally that did not store them.
	GainedDays    []byte
	FirstGainDate *db.Date
	Content       []byte
}

func (reportRow) TableName() string { return "reports" }

// FrozenViews are the views of a video at the end of a report.
type FrozenViews struct {
	Views int64
	Day   db.Date // the last day of the report whose views are known; the report has these views also on the days after it
}

// NewReport has the values with which CreateReport makes a report.
type NewReport struct {
	ID              uuid.UUID // the EffectID of the request's IdempotencyKey; if it is zero, CreateReport makes an id
	CollectionID    uuid.UUID
	IncludeChildren bool
	From, To        db.Date
	// ContinuesReportID is the report that the new report continues, which must end on the day before From. It is nil if the new report continues none.
	ContinuesReportID *uuid.UUID
	// FrozenViews maps the ids of videos to their views at the end of the continued report. Videos whose views are unknown there are missing. The new report
	// begins with these views, except for videos that were added to the collection later.
	FrozenViews map[uuid.UUID]FrozenViews
	CreatedBy   uuid.UUID
	// Document is the function that writes the document of a report to a writer. When it is called, the fields Checksum and Bytes of the report are
	// not set yet.
	Document func(w io.Writer, r Report, c CollectionTotals) error
}

// CreateReport makes a report from the points as they are now. If a report with n.ID exists, it returns that report. CreateReport can return the
// errors of CollectionTotals, and a *LimitError if the organisation has MaxReports reports.
func (o *Org) CreateReport(ctx context.Context, n NewReport) (Report, error) {
	if n.ID == uuid.Nil {
		n.ID = db.NewID()
	} else if made, err := o.Report(ctx, n.ID); !errors.Is(err, db.ErrNotFound) {
		return made, err // an earlier attempt of the request made the report, but the server crashed before it answered the request
	}
	totals, err := o.readCollectionTotals(ctx, CollectionTotalsQuery{Collection: n.CollectionID, IncludeChildren: n.IncludeChildren,
		From: n.From, To: min(n.To, o.s.db.Now().Day()), ForReport: true}, n.FrozenViews)
	if err != nil {
		return Report{}, err
	}
	row := reportRow{Report: Report{OrganisationID: o.id, ID: n.ID, CollectionID: n.CollectionID, IncludeChildren: n.IncludeChildren,
		StartDate: n.From, EndDate: n.To, ContinuesReportID: n.ContinuesReportID, CreatedBy: n.CreatedBy, CreatedAt: o.s.db.Now(), Sharing: Sharing{Access: AccessPrivate}}}
	for _, c := range totals.Collections {
		if c.ID == n.CollectionID {
			row.CollectionName = c.Name
		}
	}
	row.GainedDays, row.FirstGainDate = row.encodeGainedDays(totals.Videos)
	// fill sets the fields that depend on the other reports of the organisation, and the document.
	fill := func(reports *gorm.DB) error {
		reports = reports.Session(&gorm.Session{}) // so that it can be used for several statements
		if row.Number, err = nextReportNumber(reports); err != nil {
			return db.Translate(err)
		}
		if err := row.setOverlaps(totals.Videos, reports); err != nil {
			return db.Translate(err)
		}
		return row.setDocument(func(w io.Writer) error { return n.Document(w, row.Report, totals) })
	}
	// This can take long, so it is done before the transaction, which locks the organisation. It is done again if another report takes the number of this
	// report meanwhile. The last attempt does it inside the transaction.
	attempt := 0
	err = db.RetryOnDuplicate(func() error {
		attempt++
		last := attempt == maxDocumentAttempts
		if !last {
			if err := fill(o.scopedQuery(ctx, "reports")); err != nil {
				return err
			}
		}
		return o.changeData(ctx, func(t OrgTx) error {
			reports := db.Scoped(t.Tx, "reports", o.id)
			if last {
				if err := fill(reports); err != nil {
					return err
				}
			} else if next, err := nextReportNumber(reports); err != nil {
				return err
			} else if next != row.Number {
				return db.ErrDuplicate
			}
			return t.Tx.Create(&row).Error
		})
	})
	return row.Report, err
}

// setDocument calls writeDocument, compresses the written document, and stores it in the row. It
// also sets Checksum and Bytes.
func (r *reportRow) setDocument(writeDocument func(io.Writer) error) error {
	var content bytes.Buffer
	compressed, err := zstd.NewWriter(&content, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	sum := sha256.New()
	// The uncompressed document can have 20 MB, so it is never in memory as a whole.
	counted := &countingWriter{to: io.MultiWriter(sum, compressed)}
	buffered := bufio.NewWriter(counted)
	if err := errors.Join(writeDocument(buffered), buffered.Flush(), compressed.Close()); err != nil {
		return err
	}
	r.Checksum, r.Bytes, r.Content = hex.EncodeToString(sum.Sum(nil)), counted.bytes, content.Bytes()
	return nil
}

// countingWriter counts the bytes that are written to another writer.
type countingWriter struct {
	to    io.Writer
	bytes int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.bytes += int64(n)
	return n, err
}

// nextReportNumber returns the number of the organisation's next report, or a *LimitError. The parameter "reports" is a query for all reports of the organisation.
func nextReportNumber(reports *gorm.DB) (int64, error) {
	var last int64
	if err := reports.Select("COALESCE(MAX(reports.number), 0)").Scan(&last).Error; err != nil {
		return 0, err
	}
	// Reports are never deleted, so the highest number is also the number of reports.
	if last >= MaxReports {
		return 0, limitError(LimitReports, "the organisation has %d reports, and at most %[1]d are allowed", MaxReports)
	}
	return last + 1, nil
}

// Report returns the report with the given id without its document, or ErrNotFound.
func (o *Org) Report(ctx context.Context, id uuid.UUID) (Report, error) {
	row, err := o.reportRow(o.scopedQuery(ctx, "reports").Omit("gained_days", "first_gain_date", "content"), id)
	return row.Report, err
}

// UpdateReport changes the share page of a report and returns the report without its document. Its errors include ErrNotFound and
// ErrPasswordRequired.
func (o *Org) UpdateReport(ctx context.Context, id uuid.UUID, p SharingPatch) (Report, error) {
	var r Report
	err := o.changeData(ctx, func(t OrgTx) error {
		row, err := o.reportRow(db.Scoped(t.Tx, "reports", o.id).Omit("gained_days", "first_gain_date", "content"), id)
		if err != nil {
			return err
		}
		r = row.Report
		if err := r.change(t.Tx, p, sharePage{OrganisationID: o.id, CollectionID: r.CollectionID, ReportID: &id}, t.Now); err != nil {
			return err
		}
		return db.Scoped(t.Tx, "reports", o.id).Where("reports.id = ?", id).Updates(map[string]any{
			"access": r.Access, "password_hash": r.PasswordHash, "hash": r.Hash, "share_expires_at": r.ShareExpiresAt, "display_settings": r.DisplaySettings}).Error
	})
	return r, err
}

// ReportDocument returns the document of a report: the JSON that was stored when the report was made. It returns ErrNotFound for an unknown id. For a
// document of 20 MB, ReportDocument needs 9 MB less memory than ReadReport, so it decompresses the document itself.
func (o *Org) ReportDocument(ctx context.Context, id uuid.UUID) ([]byte, error) {
	row, err := o.reportRow(o.scopedQuery(ctx, "reports"), id)
	if err != nil {
		return nil, err
	}
	coder, err := sharedBodyCoder()
	if err != nil {
		return nil, err
	}
	document, err := coder.decoder.DecodeAll(row.Content, make([]byte, 0, row.Bytes)) // DecodeAll would double a smaller slice again and again
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", id, err)
	}
	sum := sha256.Sum256(document)
	return document, row.requireChecksum(sum[:])
}

// ReadReport calls the function `read` with a reader of the document of a report, or returns ErrNotFound. The document is never in memory as a whole.
// If `read` returns nil, ReadReport then verifies the checksum of the whole document, even if `read` has not read all of it.
func (o *Org) ReadReport(ctx context.Context, id uuid.UUID, read func(document io.Reader) error) error {
	row, err := o.reportRow(o.scopedQuery(ctx, "reports"), id)
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(bytes.NewReader(row.Content), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer decoder.Close()
	sum := sha256.New()
	document := io.TeeReader(decoder, sum)
	if err = read(document); err == nil {
		_, err = io.Copy(io.Discard, document)
	}
	if err != nil {
		return fmt.Errorf("report %s: %w", id, err)
	}
	return row.requireChecksum(sum.Sum(nil))
}

// requireChecksum returns an error if sum, the SHA-256 of the document, is not the checksum of the report.
func (r *reportRow) requireChecksum(sum []byte) error {
	if hex.EncodeToString(sum) != r.Checksum {
		return fmt.Errorf("the stored document of report %s does not have the checksum %s", r.ID, r.Checksum)
	}
	return nil
}

// reportRow returns the report with the given id, or ErrNotFound. The given query must select all reports of the organisation, with or without
// their documents.
func (o *Org) reportRow(q *gorm.DB, id uuid.UUID) (reportRow, error) {
	return db.FindOne[reportRow](q.Where("reports.id = ?", id), "report", id)
}

// ReportQuery selects the reports of a collection, or all reports of the organisation.
type ReportQuery struct {
	CollectionID   uuid.UUID
	AllCollections bool     // true for the reports of all collections, including deleted ones; CollectionID has no effect then
	Order          db.Order // the column is one of ReportOrders
	Window         db.Window
}

// ReportOrders are the columns by which reports can be ordered.
var ReportOrders = db.SortColumns{"number": db.SortBy("reports", "number", db.IntegerColumn)}

// ListReports returns the reports that the query selects, without their documents, even if their collection
// was deleted. It returns ErrNotFound if the collection is unknown and has no reports.
func (o *Org) ListReports(ctx context.Context, query ReportQuery) (*db.List[Report], error) {
	q := o.scopedQuery(ctx, "reports")
	if !query.AllCollections {
		q = q.Where("reports.collection_id = ?", query.CollectionID)
	}
	var total int64
	if err := q.Session(&gorm.Session{}).Count(&total).Error; err != nil {
		return nil, db.Translate(err)
	}
	if total == 0 && !query.AllCollections {
		if err := o.requireCollection(ctx, query.CollectionID); err != nil {
			return nil, err
		}
	}
	return db.ReadList(ctx, o.s.db, q, db.ListSpec[Report]{Sort: ReportOrders, Table: "reports", Columns: reportColumns,
		ID: func(r *Report) uuid.UUID { return r.ID }, Total: total}, query.Order, query.Window)
}
