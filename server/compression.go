package server

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// compressFrom is the size from which an answer is compressed: below, the time is worth more than the bytes.
const compressFrom = 1024

// compression encodes answers as the caller asks: zstd, gzip, or not at all. What comes encoded already stays as it is. The
// tag of an encoded answer bears the encoding's suffix, since its bytes are others (RFC 9110, section 8.8.1).
func compression() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(compressFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.PreferZstd(true),
		gzhttp.SuffixETag("-gzip"), gzhttp.SetContentType(false))
}
