package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/ingest"
)

// screenshots is the folder into which savePicture writes. `make screenshots` sets it with the flag -screenshots.
var screenshots = flag.String("screenshots", "", "write a picture of each page of the dashboard into this folder")

// savePicture writes a screenshot of the page.
func (b *tab) savePicture(name string) {
	b.t.Helper()
	var picture []byte
	b.runSteps(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatJpeg).WithQuality(70).Do(ctx)
		return err
	}))
	require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".jpg"), picture, 0o600))
}

// pictureVideos are videos in the screenshots.
var pictureVideos = []ingest.VideoFacts{
	{Title: new("مرحبا بكم في متجرنا الجديد 🎉 #عرض"), Username: new("matjar"), Views: new(int64(2311)), Likes: new(int64(190)), Comments: new(int64(12))},
	{Title: new("手作りのお菓子の作り方🍰を紹介します"), Username: new("okashi"), Views: new(int64(871)), Likes: new(int64(64)), Comments: new(int64(3))},
}

// TestScreenshots tests nothing. With the flag -screenshots it takes pictures of all pages, without the flag it does nothing.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	if *screenshots == "" {
		return
	}
	d := startDashboard(t, pictureVideos, "Autumn campaign")
	b := openBrowser(t)
	b.runSteps(setWidth(1440), chromedp.Navigate(d.url+"/login"), chromedp.WaitVisible("#token"))
	b.savePicture("login")
	b.signIn(d)
	for name, path := range d.pagePaths(t) {
		if strings.Contains(name, "-") {
			continue // save no pictures of variants of a page, such as "compare-empty"
		}
		for kind, width := range map[string]int64{"phone": 360, "desktop": 1440} {
			b.runSteps(setWidth(width), chromedp.Navigate(d.url+path), chromedp.WaitReady("main"))
			for _, scheme := range []string{"light", "dark"} {
				b.runSteps(preferColours(scheme), chromedp.Evaluate(waitForLayout, nil, awaitPromise))
				b.savePicture(fmt.Sprintf("%s-%s-%s", name, kind, scheme))
			}
		}
	}
}
