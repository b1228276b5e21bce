package server

// View tells whether a caller may see metrics. Every function that converts metrics for a response has a View as parameter, so that masking
// cannot be forgotten.
type View struct{ masked bool }

// FullView shows everything.
var FullView = View{}

// MaskedView hides every metric.
var MaskedView = View{masked: true}

// Count returns n, or nil if metrics are masked.
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

// Ratio returns f, which is nil if it is unknown, or nil if metrics are masked.
func (v View) Ratio(f *float64) *float64 {
	if v.masked {
		return nil
	}
	return f
}

// Text returns s, for example the time of the last fetch, or nil if metrics are masked.
func (v View) Text(s *string) *string {
	if v.masked {
		return nil
	}
	return s
}

// MetricsMasked returns the member metrics_masked: true if metrics are masked, otherwise absent.
func (v View) MetricsMasked() *bool {
	if v.masked {
		return &v.masked
	}
	return nil
}
