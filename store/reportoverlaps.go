package store

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// This file finds the earlier reports that count the same gained views as a new report. If people are paid by both reports, they are paid twice for these
// views.

// MaxReportOverlaps is the highest number of reports with which CreateReport compares a new report.
const MaxReportOverlaps = 100

// ReportOverlap is an earlier report of the organisation that counts views which a new report counts, too: both reports count views that at least one video
// got on the same day.
type ReportOverlap struct {
	ReportID       uuid.UUID `json:"report_id"`
	Number         int64     `json:"number"`
	CollectionName string    `json:"collection_name"` // name of the collection when the earlier report was made
	StartDate      db.Date   `json:"start_date"`
	EndDate        db.Date   `json:"end_date"`
	Videos         int64     `json:"videos"`       // number of videos of which both reports count views of the same days
	ViewsGained    int64     `json:"views_gained"` // the views that these videos gained in the new report
	// ViewsAtStart are the views at the start of those of these videos that are new in the period of the new report: see IsNewInPeriod.
	ViewsAtStart int64 `json:"views_at_start"`
}

// countedViews are the views of a video that a report counts, and the days on which the video got them.
type countedViews struct {
	first, last db.Date
	gained      int64 // 0 if the gain is unknown
	atStart     int64 // the views at the start if the video is new in the period of the report, otherwise 0
}

// countedViews returns the views of the video that a report counts. It returns false if there are none.
func (r *Report) countedViews(v *CollectionVideo) (c countedViews, ok bool) {
	if v.StartDay == nil {
		return c, false
	}
	if v.Gained != nil {
		c.gained = *v.Gained
	}
	if uploaded := v.Details.UploadedAt; uploaded != nil && IsNewInPeriod(*uploaded, *v.StartDay, r.StartDate, r.EndDate) {
		c.atStart = *v.StartViews
	}
	c.last = *v.EndDay
	switch {
	case c.atStart > 0:
		c.first = *v.StartDay
	case v.FrozenViews == nil:
		c.first = *v.StartDay + 1
	case v.LateFrozenDay:
		c.first = v.FrozenDay
	default:
		// The gain contains the views of the days between, which the continued report lacks. A late count can also change the last views before the period.
		c.first = min(v.FrozenDay+1, c.last)
	}
	return c, c.gained != 0 || c.atStart > 0
}

// gainedDaysSize is the number of bytes that encodeGainedDays writes for each video.
const gainedDaysSize = 24

// encodeGainedDays encodes the days of the views that a report counts. Each video with such views has 24 bytes: its id, and the first and the last of the
// days as big-endian numbers. They have the order of the videos, which must be sorted by id. encodeGainedDays also returns the first of all these days. It
// is nil if the report counts no views.
func (r *Report) encodeGainedDays(videos []CollectionVideo) (encoded []byte, from *db.Date) {
	encoded = make([]byte, 0, len(videos)*gainedDaysSize)
	for n := range videos {
		if c, ok := r.countedViews(&videos[n]); ok {
			if from == nil || c.first < *from {
				from = &c.first
			}
			encoded = append(encoded, videos[n].ID[:]...)
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(c.first)) //nolint:gosec // decoded with the same conversion
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(c.last))  //nolint:gosec // decoded with the same conversion
		}
	}
	return encoded, from
}

// addOverlaps adds to o the videos of which a report and an earlier report count views of the same days. The videos of the report must be sorted by id.
// earlier is the result of encodeGainedDays for the earlier report.
func (r *Report) addOverlaps(o *ReportOverlap, videos []CollectionVideo, earlier []byte) {
	for n := range videos {
		v := &videos[n]
		c, ok := r.countedViews(v)
		if !ok {
			continue
		}
		for len(earlier) >= gainedDaysSize && bytes.Compare(earlier[:16], v.ID[:]) < 0 {
			earlier = earlier[gainedDaysSize:]
		}
		if len(earlier) < gainedDaysSize || !bytes.Equal(earlier[:16], v.ID[:]) {
			continue
		}
		earlierFirst, earlierLast := db.Date(binary.BigEndian.Uint32(earlier[16:])), db.Date(binary.BigEndian.Uint32(earlier[20:])) //nolint:gosec // encoded with the same conversion
		if c.first <= earlierLast && earlierFirst <= c.last {
			o.Videos++
			o.ViewsGained += c.gained
			o.ViewsAtStart += c.atStart
		}
	}
}

// setOverlaps compares a new report of the given videos with the newest MaxReportOverlaps reports that can count views of the same days, and sets its field
// OverlapsJSON. The parameter reports is a query for all reports of the organisation. A report that the new report continues counts other views, so it is left out. So are
// reports of versions of ReelTally that did not store the days of the gains.
func (r *reportRow) setOverlaps(videos []CollectionVideo, reports *gorm.DB) error {
	if r.FirstGainDate == nil {
		r.OverlapsJSON = new("[]")
		return nil
	}
	earlier := reports.Select("reports.id, reports.number, reports.collection_name, reports.start_date, reports.end_date, reports.gained_days").
		Where("reports.first_gain_date <= ? AND reports.end_date >= ?", r.EndDate, *r.FirstGainDate).Order("reports.number DESC").Limit(MaxReportOverlaps)
	if r.ContinuesReportID != nil {
		earlier = earlier.Where("reports.id <> ?", *r.ContinuesReportID)
	}
	overlaps := []ReportOverlap{}
	rows, err := earlier.Rows()
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var o ReportOverlap
		var days sql.RawBytes // one row at a time and without a copy, because all rows together can have 12 MB
		if err := rows.Scan(&o.ReportID, &o.Number, &o.CollectionName, &o.StartDate, &o.EndDate, &days); err != nil {
			return err
		}
		if r.addOverlaps(&o, videos, days); o.Videos > 0 {
			overlaps = append(overlaps, o)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	encoded, err := json.Marshal(overlaps)
	if err != nil {
		return err
	}
	r.OverlapsJSON = new(string(encoded))
	return nil
}

// ListOverlaps returns the earlier reports that count the same views, the newest first. It returns nil if they are unknown, because a version of ReelTally
// without them made the report.
func (r *Report) ListOverlaps() ([]ReportOverlap, error) {
	if r.OverlapsJSON == nil {
		return nil, nil
	}
	var overlaps []ReportOverlap
	if err := json.Unmarshal([]byte(*r.OverlapsJSON), &overlaps); err != nil {
		return nil, fmt.Errorf("report %s: %w", r.ID, err)
	}
	return overlaps, nil
}
