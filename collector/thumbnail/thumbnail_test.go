package thumbnail_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/collector/thumbnail"
	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/outbound/outboundtest"
	"github.com/reeltally/reeltally/store/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func drawGradient(width, height int) image.Image {
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), uint8(x * y), 0xff})
		}
	}
	return picture
}

func encodeJPEG(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, jpeg.Encode(&out, picture, nil))
	return out.Bytes()
}

func TestShrink_fitsThePictureIntoTheLargestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ width, height, wantWidth, wantHeight int }{
		{540, 960, 160, 284}, {320, 180, 160, 90}, {100, 1000, 28, 284}, {40, 30, 40, 30}, {2000, 1, 160, 1}, {1, 1, 1, 1},
	} {
		small, err := thumbnail.Shrink(encodeJPEG(t, drawGradient(c.width, c.height)))
		require.NoError(t, err)
		config, format, err := image.DecodeConfig(bytes.NewReader(small))
		require.NoError(t, err)
		require.Equal(t, "jpeg", format)
		require.Equal(t, []int{c.wantWidth, c.wantHeight}, []int{config.Width, config.Height})
		require.Less(t, len(small), 32<<10)
	}
}

func TestShrink_refusesInvalidAndTooLargePictures(t *testing.T) {
	t.Parallel()
	var large bytes.Buffer
	require.NoError(t, png.Encode(&large, image.NewGray(image.Rect(0, 0, 1, 1))))
	header := large.Bytes()[12:29] // the name and the contents of the first chunk, which begin with the width and the height
	binary.BigEndian.PutUint32(header[4:], 4000)
	binary.BigEndian.PutUint32(header[8:], 4000)
	binary.BigEndian.PutUint32(large.Bytes()[29:], crc32.ChecksumIEEE(header))
	_, err := thumbnail.Shrink(large.Bytes())
	require.ErrorIs(t, err, thumbnail.ErrTooManyPixels)
	whole := encodeJPEG(t, drawGradient(100, 100))
	for _, wrong := range [][]byte{nil, []byte("<html>"), whole[:len(whole)/2]} {
		_, err := thumbnail.Shrink(wrong)
		require.Error(t, err)
	}
}

// FuzzShrink checks that no input makes Shrink panic or return a picture that is too large.
func FuzzShrink(f *testing.F) {
	var out bytes.Buffer
	if err := png.Encode(&out, drawGradient(3, 200)); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		small, err := thumbnail.Shrink(raw)
		if err != nil {
			return
		}
		config, err := jpeg.DecodeConfig(bytes.NewReader(small))
		require.NoError(t, err)
		require.LessOrEqual(t, config.Width, thumbnail.MaxWidth)
		require.LessOrEqual(t, config.Height, thumbnail.MaxHeight)
	})
}

func TestFetch_connectsOnlyToTheHostsOfThePlatform(t *testing.T) {
	t.Parallel()
	picture := encodeJPEG(t, drawGradient(90, 160))
	pictures := func(host string) bool {
		return strings.HasSuffix(host, ".tiktokcdn.com") && !strings.HasPrefix(host, "ip-") || host == "i.ytimg.com"
	}
	internet := outboundtest.NewInternet(t, pictures, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/large":
			_, _ = w.Write(make([]byte, 5<<20))
		default:
			_, _ = w.Write(picture)
		}
	}))
	fetcher, err := thumbnail.New(thumbnail.Options{Lookup: internet.Lookup, Dial: internet.Dial, RootCAs: internet.Authority.Roots})
	require.NoError(t, err)
	t.Cleanup(fetcher.Close)
	for _, good := range []string{"https://p16.tiktokcdn.com/a.jpeg", "https://P16.TikTokCDN.com/a.jpeg?x=1", "https://p16.tiktokcdn.com/to/https://p77.tiktokcdn.com/a.jpeg"} {
		small, err := fetcher.Fetch(t.Context(), link.TikTok, good)
		require.NoError(t, err, good)
		config, err := jpeg.DecodeConfig(bytes.NewReader(small))
		require.NoError(t, err)
		require.Equal(t, 160, config.Height)
	}
	for _, bad := range []string{
		"http://p16.tiktokcdn.com/a.jpeg", "https://p16.tiktokcdn.com:8443/a.jpeg", "https://user@p16.tiktokcdn.com/a.jpeg", "https://example.com/a.jpeg",
		"https://i.ytimg.com/vi/x/mqdefault.jpg", "https://tiktokcdn.com.example.com/a.jpeg", "https://nottiktokcdn.com/a.jpeg", "https://127.0.0.1/a.jpeg", "file:///etc/passwd",
		"https://ip-127-0-0-1.tiktokcdn.com/a.jpeg", "https://ip-10-0-0-1.tiktokcdn.com/a.jpeg", "https://ip-169-254-169-254.tiktokcdn.com/a.jpeg",
		"https://p16.tiktokcdn.com/to/https://example.com/a.jpeg", "https://p16.tiktokcdn.com/to/http://127.0.0.1/", "https://p16.tiktokcdn.com/to/https://ip-10-0-0-1.tiktokcdn.com/",
		"https://p16.tiktokcdn.com/to//to//to//to//to/", "https://p16.tiktokcdn.com/missing", "https://p16.tiktokcdn.com/large", "%", "",
	} {
		_, err := fetcher.Fetch(t.Context(), link.TikTok, bad)
		require.Error(t, err, bad)
	}
	internet.RequireNoForbiddenConnection(t, func(host string) bool { return strings.HasSuffix(host, ".tiktokcdn.com") })
}

func TestFetch_sendsRequestsToBaseURLInsteadOfThePlatform(t *testing.T) {
	t.Parallel()
	_, err := thumbnail.New(thumbnail.Options{BaseURL: "ftp://example.com"})
	require.ErrorContains(t, err, "the base URL is invalid")
	reach, err := outbound.AllowOneServer("http://127.0.0.1:9090/thumbnails")
	require.NoError(t, err)
	require.Equal(t, outbound.Operated, reach("127.0.0.1:9090"))
	require.Equal(t, outbound.NoAddress, reach("i.ytimg.com:443"))
}
