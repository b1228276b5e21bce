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

// ReportOverlap is an earlier report of the organisation that counts views which a new report counts, too: in both reports, at least one video gained
// views on the same day.
type ReportOverlap struct {
	ReportID       uuid.UUID `json:"report_id"`
	Number         int64     `json:"number"`
	CollectionName string    `json:"collection_name"` // name of the collection when the earlier report was made
	StartDate      db.Date   `json:"start_date"`
	EndDate        db.Date   `json:"end_date"`
	Videos         int64     `json:"videos"`       // number of videos that gained views on the same days in both reports
	ViewsGained    int64     `json:"views_gained"` // the views that these videos gained in the new report
}

// daysOfGain returns the first and the last day on which a video gained views in a report. It returns false if the video gained none.
func (v *CollectionVideo) daysOfGain() (first, last db.Date, ok bool) {
	if v.Gained == nil || *v.Gained == 0 {
		return 0, 0, false
	}
	start := *v.StartDay
	if v.FrozenViews != nil {
		start = v.FrozenDay // the gain contains the views of the days between, which the continued report lacks
	}
	// The gain begins after the start. A late count can also change the views of FrozenDay itself, so that the gain is that of this day.
	return min(start+1, *v.EndDay), *v.EndDay, true
}

// gainedDaysSize is the number of bytes that encodeGainedDays writes for each video.
const gainedDaysSize = 24

// encodeGainedDays encodes the days on which the videos of a report gained views. Each video that gained views has 24 bytes: its id, and the first and the
// last of the days as big-endian numbers. They have the order of the videos, which must be sorted by id. encodeGainedDays also returns the first of all
// these days. It is nil if no video gained views.
func encodeGainedDays(videos []CollectionVideo) (encoded []byte, from *db.Date) {
	encoded = make([]byte, 0, len(videos)*gainedDaysSize)
	for n := range videos {
		if first, last, ok := videos[n].daysOfGain(); ok {
			if from == nil || first < *from {
				from = &first
			}
			encoded = append(encoded, videos[n].ID[:]...)
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(first)) //nolint:gosec // decoded with the same conversion
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(last))  //nolint:gosec // decoded with the same conversion
		}
	}
	return encoded, from
}

// countOverlaps returns the number of videos that gained views on the same days in a report and in an earlier one, and the sum of their gains in the report.
// The videos of the report must be sorted by id. earlier is the result of encodeGainedDays for the earlier report.
func countOverlaps(videos []CollectionVideo, earlier []byte) (count, gained int64) {
	for n := range videos {
		v := &videos[n]
		first, last, ok := v.daysOfGain()
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
		if first <= earlierLast && earlierFirst <= last {
			count++
			gained += *v.Gained
		}
	}
	return count, gained
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
		if o.Videos, o.ViewsGained = countOverlaps(videos, days); o.Videos > 0 {
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
