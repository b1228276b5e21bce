package link

// Description is a parsed link as one JSON object. A member is null when the link does not tell it; all are null
// for a refused link.
type Description struct {
	Platform  *Platform `json:"platform"`
	Kind      *Kind     `json:"kind"`
	ID        *string   `json:"id"`
	Handle    *string   `json:"handle"`
	Canonical *string   `json:"canonical"`
}

// Describe parses a link and says what it means. It does not fail: a refused link is described by nulls.
func Describe(raw string) Description {
	l, err := Parse(raw)
	if err != nil {
		return Description{}
	}
	return Description{
		Platform:  &l.Platform,
		Kind:      &l.Kind,
		ID:        nonEmpty(l.ID),
		Handle:    nonEmpty(l.Handle),
		Canonical: nonEmpty(l.Canonical),
	}
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
