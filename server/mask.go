package server

// View is how much of the metrics a caller may see. Every conversion to a type of the contract that has metrics takes
// one, so that masking cannot be forgotten.
type View struct{ masked bool }

// FullView shows everything.
var FullView = View{}

// MaskedView hides every metric.
var MaskedView = View{masked: true}

// Count shows a count.
func (v View) Count(n *int64) *int64 {
	if v.masked {
		return nil
	}
	return n
}

// Number shows a number.
func (v View) Number(f float64) *float64 {
	if v.masked {
		return nil
	}
	return &f
}

// Ratio shows a number that may be unknown.
func (v View) Ratio(f *float64) *float64 {
	if v.masked {
		return nil
	}
	return f
}

// Text shows a text that is a metric, such as the time of the last fetch.
func (v View) Text(s *string) *string {
	if v.masked {
		return nil
	}
	return s
}

// Mark is metrics_masked: true where metrics are hidden, absent elsewhere.
func (v View) Mark() *bool {
	if v.masked {
		return &v.masked
	}
	return nil
}
