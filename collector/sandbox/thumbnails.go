package sandbox

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"net/http"
	"strings"

	"github.com/reeltally/reeltally/store/link"
)

// ThumbnailURL returns the URL of the video's thumbnail, as the platform's answers contain it.
func (t VideoTruth) ThumbnailURL() string {
	switch t.Platform {
	case link.TikTok:
		return "https://p16-sign.tiktokcdn-us.com/sandbox/" + t.ID + ".jpeg"
	case link.YouTube:
		return "https://i.ytimg.com/vi/" + t.ID + "/mqdefault.jpg"
	case link.Instagram:
		return "https://scontent.cdninstagram.com/sandbox/" + t.ID + ".jpg"
	case link.Facebook:
	}
	return "https://scontent.xx.fbcdn.net/sandbox/" + t.ID + ".jpg"
}

// serveThumbnail answers a request for /thumbnails/HOST/PATH, which stands for the thumbnail at https://HOST/PATH. The answer is a drawn picture.
// Its colours depend on PATH, so that the thumbnails of different videos differ.
func (s *Sandbox) serveThumbnail(w http.ResponseWriter, r *http.Request, rest string) {
	host, path, _ := strings.Cut(rest, "/")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeReply(w, r, problemReply(http.StatusMethodNotAllowed, r.Method+" is not allowed here; use GET or HEAD").withHeader("Allow", "GET, HEAD"))
		return
	}
	if !strings.Contains(path, "/") {
		writeReply(w, r, problemReply(http.StatusNotFound, "the path must be /thumbnails/HOST/PATH of a picture"))
		return
	}
	width, height := 216, 384
	if host == "i.ytimg.com" {
		width, height = 320, 180
	}
	picture := drawPicture(rng{hashTexts(s.world.seed, "thumbnail", path)}, width, height)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, nil); err != nil {
		writeReply(w, r, problemReply(http.StatusInternalServerError, "the picture cannot be encoded"))
		return
	}
	w.Header().Set("Content-Type", "image/jpeg")
	_, _ = w.Write(out.Bytes()) // an error means that the client has closed the connection
}

// drawPicture draws a sun above three rows of hills.
func drawPicture(d rng, width, height int) image.Image {
	hue := d.fraction()
	sky, ground := colourOf(hue, 0.45, 0.92), colourOf(hue+0.08+0.3*d.fraction(), 0.55, 0.55)
	sunX, sunY, radius := (0.2+0.6*d.fraction())*float64(width), (0.15+0.25*d.fraction())*float64(height), (0.08+0.08*d.fraction())*float64(height)
	sun := colourOf(0.1+0.06*d.fraction(), 0.55, 1)
	type hills struct{ base, swing, phase, steps float64 }
	var rows []hills
	for i := range 3 {
		rows = append(rows, hills{0.5 + 0.17*float64(i), 0.05 + 0.05*d.fraction(), 2 * math.Pi * d.fraction(), 3 + 4*d.fraction()})
	}
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := blendColours(sky, color.RGBA{0xff, 0xff, 0xff, 0xff}, 0.5*float64(y)/float64(height))
			if math.Hypot(float64(x)-sunX, float64(y)-sunY) < radius {
				c = sun
			}
			for i, h := range rows {
				if float64(y)/float64(height) > h.base+h.swing*math.Sin(h.phase+h.steps*float64(x)/float64(width)) {
					c = blendColours(sky, ground, 0.45+0.25*float64(i))
				}
			}
			picture.SetRGBA(x, y, c)
		}
	}
	return picture
}

// colourOf returns a colour. The hue is a fraction of the colour circle. The saturation and the value are from 0 to 1.
func colourOf(hue, saturation, value float64) color.RGBA {
	channel := func(shift float64) uint8 {
		_, part := math.Modf(hue + shift)
		strength := min(1, max(0, math.Abs(part*6-3)-1))
		return uint8(255 * value * (1 - saturation + saturation*strength))
	}
	return color.RGBA{channel(0), channel(2.0 / 3), channel(1.0 / 3), 0xff}
}

// blendColours returns a colour between a and b. The share of b is from 0 to 1.
func blendColours(a, b color.RGBA, shareOfB float64) color.RGBA {
	between := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*shareOfB) }
	return color.RGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), 0xff}
}
