// Command gorm is a server for a list of videos, written in the usual way with echo and GORM. The benchmark compares this server with ReelTally.
// A request counts the matching rows, finds the rows of the page, preloads their collections, and writes the result with c.JSON. The server reads
// the database whose URL is in REELTALLY_DATABASE_URL. When the server starts, it prints its address.
//
// The server does less than ReelTally: it has no tokens, rate limits, validation or checks of the response's size.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Collection is a collection of videos.
type Collection struct {
	ID   uuid.UUID `json:"id" gorm:"primaryKey"`
	Name string    `json:"name"`
}

// Video is a row of the table videos of ReelTally's database, with the collections that contain the video.
type Video struct {
	OrganisationID    uuid.UUID    `json:"organisation_id"`
	ID                uuid.UUID    `json:"ad_id" gorm:"primaryKey"`
	Platform          string       `json:"platform"`
	Link              string       `json:"ad_link"`
	Username          string       `json:"username"`
	LinkedAccountID   *uuid.UUID   `json:"linked_account_id"`
	CreatedAt         int64        `json:"created_at"`
	Removed           bool         `json:"removed"`
	UploadedAt        *string      `json:"uploaded_at"`
	SongName          *string      `json:"song_name"`
	SongLink          *string      `json:"song_link"`
	VideoLength       *string      `json:"video_length"`
	Title             string       `json:"title"`
	NotSafe           bool         `json:"not_safe"`
	Private           bool         `json:"private"`
	HiddenStats       bool         `json:"hidden_stats"`
	AdInfoShop        bool         `json:"ad_info_shop"`
	AdIsAd            bool         `json:"ad_is_ad"`
	AdProductIDShop   *string      `json:"ad_product_id_shop"`
	LatestViews       *int64       `json:"latest_views"`
	LatestLikes       *int64       `json:"latest_likes"`
	LatestComments    *int64       `json:"latest_comments"`
	LatestBookmarks   *int64       `json:"latest_bookmarks"`
	LatestShares      *int64       `json:"latest_shares"`
	LatestEngagement  *int64       `json:"latest_engagement"`
	LatestUpdatedAt   *int64       `json:"latest_updated_at"`
	OutlierMultiplier *float64     `json:"outlier_multiplier"`
	Increase1d        *float64     `json:"increase_1d" gorm:"column:increase_1d"`
	Increase7d        *float64     `json:"increase_7d" gorm:"column:increase_7d"`
	Increase14d       *float64     `json:"increase_14d" gorm:"column:increase_14d"`
	Increase30d       *float64     `json:"increase_30d" gorm:"column:increase_30d"`
	ViewsGained7d     *int64       `json:"views_gained_7d" gorm:"column:views_gained_7d"`
	FetchStatus       string       `json:"fetch_status"`
	FetchReason       string       `json:"fetch_reason"`
	LastAttemptAt     *int64       `json:"last_attempt_at"`
	NextFetchAt       *int64       `json:"next_fetch_at"`
	Labels            []Collection `json:"labels" gorm:"many2many:collection_videos;joinForeignKey:VideoID;joinReferences:CollectionID"`
}

func main() {
	if err := serveVideos(); err != nil {
		fmt.Fprintln(os.Stderr, "gorm:", err)
		os.Exit(1)
	}
}

// serveVideos answers requests for the list of an organisation's videos until the process is killed.
func serveVideos() error {
	db, err := gorm.Open(postgres.Open(os.Getenv("REELTALLY_DATABASE_URL")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.GET("/:organisation/videos", func(c echo.Context) error {
		limit, err := strconv.Atoi(c.QueryParam("limit"))
		if err != nil {
			return err
		}
		q := db.WithContext(c.Request().Context()).Model(&Video{}).Where("organisation_id = ? AND NOT removed", c.Param("organisation"))
		var total int64
		if err := q.Count(&total).Error; err != nil {
			return err
		}
		var videos []Video
		if err := q.Preload("Labels").Order("created_at DESC, id DESC").Limit(limit).Find(&videos).Error; err != nil {
			return err
		}
		return c.JSON(http.StatusOK, map[string]any{"data": videos, "pagination": map[string]any{"total": total}})
	})
	if e.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil { //nolint:noctx // the process listens until it is killed
		return err
	}
	fmt.Println("http://" + e.Listener.Addr().String())
	return e.Start("")
}
