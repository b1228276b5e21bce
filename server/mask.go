package server

// View says whether the metrics in a response are masked, that is, replaced by null. Every function that converts metrics for a response has a
// View as parameter, so that masking cannot be forgotten.
type View struct{ masked bool }

// FullView shows all metrics.
var FullView = View{}

// MaskedView masks all metrics.
var MaskedView = View{masked: true}

// Count returns n, or nil if metrics are masked. n is nil if the count is unknown.
func (v View) Count(n *int64) *int64 {
	if v.masked {
		return nil
	}
	return n
}

// Number returns f, or nil if metrics are masked.
func (v View) Number(f float64) *float64 {
	if v.masked {
		return nil
	}
	return &f
}

// Ratio returns f, or nil if metrics are masked. f is nil if the ratio is unknown.
func (v View) Ratio(f *float64) *float64 {
	if v.masked {
		return nil
	}
	return f
}

// Text returns s, or nil if metrics are masked. s is, for example, the time of the last fetch.
func (v View) Text(s *string) *string {
	if v.masked {
		return nil
	}
	return s
}

// MetricsMasked returns the value of the member metrics_masked: true if metrics are masked. Otherwise it returns nil, and the member is absent.
func (v View) MetricsMasked() *bool {
	if v.masked {
		return &v.masked
	}
	return nil
}
