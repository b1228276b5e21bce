package link

// Description is a parsed link as a JSON object. A member is null if the link does not contain it. All members are null for a refused
// link.
type Description struct {
	Platform  *Platform `json:"platform"`
	Kind      *Kind     `json:"kind"`
	ID        *string   `json:"id"`
	Handle    *string   `json:"handle"`
	Canonical *string   `json:"canonical"`
}

// Describe parses a link. It does not fail: all members are null for a refused link.
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
