package web

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"github.com/reeltally/reeltally/store"
)

// The size and the margin of a share page's preview image, in pixels. Social networks and
// messengers expect this size.
const (
	cardWidth  = 1200
	cardHeight = 630
	cardMargin = 72
)

// The colours of the preview image are the colours of the light theme in style.css.
var (
	cardBackground = color.RGBA{0xfb, 0xfb, 0xf9, 0xff}
	cardText       = color.RGBA{0x1c, 0x1c, 0x19, 0xff}
	cardMuted      = color.RGBA{0x5e, 0x5e, 0x57, 0xff}
	cardAccent     = color.RGBA{0x2f, 0x4f, 0xd0, 0xff}
	cardArea       = color.RGBA{0xe4, 0xe9, 0xfb, 0xff}
)

// showCard sends the preview image of a public share page of a collection or report. Share pages with a password have no preview image,
// because the image would show their numbers to everyone.
func showCard(v *visit) error {
	share, err := v.openShare()
	if err != nil {
		return err
	}
	if share.Access != store.AccessPublic {
		return errNotFound
	}
	s, err := newShareVisit(v, share)
	if err != nil {
		return err
	}
	page := s.page()
	load := s.loadSums
	if share.Kind == store.ShareReport {
		load = s.loadReport
	}
	if err := load(&page); err != nil {
		return err
	}
	picture, err := drawCard(page)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "image/png")
	v.w.Header().Set("Cache-Control", "public, max-age=300")
	_, err = v.w.Write(picture)
	return err
}

// fontFaces are the fonts of a preview image, each in one size.
type fontFaces struct {
	title, number, label, note font.Face
	has                        func(r rune) bool // returns true if the font of the title contains the given character
}

// newFontFaces returns the font faces for one preview image. A font face has a drawing buffer, so images that are drawn at the same time must
// not share font faces.
func newFontFaces() (f fontFaces, err error) {
	fonts, err := cardFonts()
	if err != nil {
		return f, err
	}
	for _, wanted := range []struct {
		face *font.Face
		font *opentype.Font
		size float64
	}{{&f.title, fonts.bold, 56}, {&f.number, fonts.bold, 64}, {&f.label, fonts.regular, 30}, {&f.note, fonts.regular, 24}} {
		if *wanted.face, err = opentype.NewFace(wanted.font, &opentype.FaceOptions{Size: wanted.size, DPI: 72, Hinting: font.HintingNone}); err != nil {
			return f, err
		}
	}
	f.has = func(r rune) bool {
		glyph, err := fonts.bold.GlyphIndex(nil, r)
		return err == nil && glyph != 0
	}
	return f, nil
}

// cardFonts returns the parsed fonts. The first call parses them.
var cardFonts = sync.OnceValues(func() (fonts struct{ regular, bold *opentype.Font }, err error) {
	if fonts.regular, err = opentype.Parse(goregular.TTF); err != nil {
		return fonts, err
	}
	fonts.bold, err = opentype.Parse(gobold.TTF)
	return fonts, err
})

// drawCard returns the preview image of a share page as PNG. The image shows the title, the page's chart as a
// line, and up to three numbers. A note can stand below a number.
func drawCard(page sharePage) ([]byte, error) {
	faces, err := newFontFaces()
	if err != nil {
		return nil, err
	}
	picture := image.NewRGBA(image.Rect(0, 0, cardWidth, cardHeight))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(cardBackground), image.Point{}, draw.Src)
	y := cardMargin + 48
	for _, line := range wrapTitle(faces, page.Title, cardWidth-2*cardMargin, 2) {
		drawText(picture, faces.title, cardText, cardMargin, y, line)
		y += 66
	}
	y += 44
	x, chartTop := cardMargin, y+96
	for _, t := range cardTiles(page) {
		label := t.LabelWithPeriod(page.Period.Days)
		drawText(picture, faces.number, cardText, x, y+20, formatShort(t.Value))
		drawText(picture, faces.label, cardMuted, x, y+64, label)
		if note := t.Note(); note != "" {
			drawText(picture, faces.note, cardMuted, x, y+98, note)
			chartTop = y + 128
		}
		x += max(font.MeasureString(faces.number, formatShort(t.Value)).Ceil(), font.MeasureString(faces.label, label).Ceil(), font.MeasureString(faces.note, t.Note()).Ceil()) + 64
	}
	if page.Chart != nil {
		drawLine(picture, *page.Chart, image.Rect(cardMargin, chartTop, cardWidth-cardMargin, cardHeight-88))
	}
	drawText(picture, faces.label, cardMuted, cardMargin, cardHeight-36, "ReelTally")
	if page.MadeUp {
		drawText(picture, faces.label, cardMuted, cardMargin+180, cardHeight-36, "made-up numbers")
	}
	if page.Report != nil { // the numbers of a report never change, so the image says to which days they belong
		text := page.Period.Text()
		drawText(picture, faces.label, cardMuted, cardWidth-cardMargin-font.MeasureString(faces.label, text).Ceil(), cardHeight-36, text)
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, picture)
	return out.Bytes(), err
}

// cardTiles returns at most three tiles, all with known numbers, for the preview image. The tile with the number of videos comes last, so it is left out
// if three other tiles have known numbers.
func cardTiles(page sharePage) []tile {
	first := 1 // the first tile of a collection has the number of videos, so it is moved to the end
	if page.Report != nil {
		first = 0 // in a report, the tile with the number of videos is already the last one
	}
	var out []tile
	for n := range page.Tiles {
		t := page.Tiles[(n+first)%len(page.Tiles)]
		if t.Value != nil && len(out) < 3 {
			out = append(out, t)
		}
	}
	return out
}

// drawText draws a text on a picture. x and y are the coordinates of the left end of the text's base line.
func drawText(picture draw.Image, face font.Face, ink color.Color, x, y int, text string) {
	d := font.Drawer{Dst: picture, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}

// wrapTitle breaks a title into at most maxLines lines, each at most maxWidth pixels wide. Text
// that does not fit is cut off.
func wrapTitle(faces fontFaces, text string, maxWidth, maxLines int) []string {
	// Leave out characters that the font does not contain, such as emoji.
	shown := strings.Map(func(r rune) rune {
		if !faces.has(r) {
			return -1
		}
		return r
	}, text)
	fits := func(s string) bool { return font.MeasureString(faces.title, s).Ceil() <= maxWidth }
	var out []string
	line := ""
	for word := range strings.FieldsSeq(shown) {
		switch joined := strings.TrimSpace(line + " " + word); {
		case fits(joined):
			line = joined
		case line == "" || len(out) == maxLines-1:
			out = append(out, cutTextToFit(joined, fits))
			line = ""
		default:
			out, line = append(out, line), word
		}
		if len(out) == maxLines {
			return out
		}
	}
	if line != "" {
		out = append(out, cutTextToFit(line, fits))
	}
	return out
}

// cutTextToFit shortens a text as little as needed, until fits(text) is true. An ellipsis replaces
// the removed end. The result is "" if the ellipsis alone does not fit.
func cutTextToFit(text string, fits func(string) bool) string {
	runes := []rune(text)
	for n := len(runes); n > 0; n-- {
		if n == len(runes) && fits(text) {
			return text
		}
		if shorter := string(runes[:n-1]) + "…"; fits(shorter) {
			return shorter
		}
	}
	return ""
}

// cardPoint is a point of a preview image, in pixels from the upper left corner of the drawing area.
type cardPoint struct{ x, y float32 }

// drawLine draws the chart's shown metric as a line and fills the area below. The line connects
// days with known numbers, also across days without a number.
func drawLine(picture draw.Image, c chart, drawingArea image.Rectangle) {
	var marks []cardPoint
	var lowest, highest float64
	for n := range c.Points {
		p := c.Points[len(c.Points)-1-n]
		if p.Values[c.Metric] == nil {
			continue
		}
		value := float64(*p.Values[c.Metric])
		if len(marks) == 0 {
			lowest, highest = value, value
		}
		lowest, highest = min(lowest, value), max(highest, value)
		marks = append(marks, cardPoint{float32(p.Day - c.Period.Start), float32(value)})
	}
	if len(marks) < 2 || drawingArea.Dy() < 20 {
		return
	}
	width, height := float32(drawingArea.Dx()), float32(drawingArea.Dy())
	for n, m := range marks {
		marks[n].x = width * m.x / float32(max(1, c.Period.End-c.Period.Start))
		marks[n].y = height / 2
		if highest > lowest {
			marks[n].y = 4 + (height-8)*float32(1-(float64(m.y)-lowest)/(highest-lowest))
		}
	}
	area := vector.NewRasterizer(drawingArea.Dx(), drawingArea.Dy())
	area.MoveTo(marks[0].x, height)
	for _, m := range marks {
		area.LineTo(m.x, m.y)
	}
	area.LineTo(marks[len(marks)-1].x, height)
	area.ClosePath()
	area.Draw(picture, drawingArea, image.NewUniform(cardArea), image.Point{})

	const thickness = 2.5 // half of the width of the line, in pixels
	line := vector.NewRasterizer(drawingArea.Dx(), drawingArea.Dy())
	upper, lower := edgesOfLine(marks, thickness)
	line.MoveTo(upper[0].x, upper[0].y)
	for _, m := range upper[1:] {
		line.LineTo(m.x, m.y)
	}
	for _, m := range slices.Backward(lower) {
		line.LineTo(m.x, m.y)
	}
	line.ClosePath()
	line.Draw(picture, drawingArea, image.NewUniform(cardAccent), image.Point{})
}

// edgesOfLine returns the edges of a line through the points. The line is twice halfWidth thick.
// There must be at least two points, and each x must be greater than the x before it.
func edgesOfLine(points []cardPoint, halfWidth float32) (upper, lower []cardPoint) {
	const maxMiter = 3 // maximum distance between a point of the line and the edge, as a multiple of halfWidth; it prevents long spikes at sharp turns
	direction := func(from, to int) (x, y float64) {
		x, y = float64(points[to].x-points[from].x), float64(points[to].y-points[from].y)
		length := math.Hypot(x, y)
		return x / length, y / length
	}
	for n, p := range points {
		x1, y1 := direction(max(0, n-1), max(1, n))
		x2, y2 := x1, y1
		if n > 0 && n+1 < len(points) {
			x2, y2 = direction(n, n+1)
		}
		// (x, y) is the direction of the line at p: the sum of the directions to p and from p. The upper and
		// the lower edge lie on both sides of p, at right angles to (x, y).
		x, y := x1+x2, y1+y2
		length := math.Hypot(x, y)
		distance := float64(halfWidth) * min(maxMiter, 2/length)
		dx, dy := float32(distance*y/length), float32(-distance*x/length)
		upper = append(upper, cardPoint{p.x + dx, p.y + dy})
		lower = append(lower, cardPoint{p.x - dx, p.y - dy})
	}
	return upper, lower
}
