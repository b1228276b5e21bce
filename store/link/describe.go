package link

// Description is a parsed link, as the program prints it in JSON. A member is null if the link does
// not contain this value.
type Description struct {
	Platform  *Platform `json:"platform"`
	Kind      *Kind     `json:"kind"`
	ID        *string   `json:"id"`
	Handle    *string   `json:"handle"`
	Canonical *string   `json:"canonical"`
}

// Describe parses a link and returns its Description. If Parse refuses the link, all members are nil.
func Describe(raw string) Description {
	l, err := Parse(raw)
	if err != nil {
		return Description{}
	}
	return Description{
		Platform:  &l.Platform,
		Kind:      &l.Kind,
		ID:        nilIfEmpty(l.ID),
		Handle:    nilIfEmpty(l.Handle),
		Canonical: nilIfEmpty(l.Canonical),
	}
}

// nilIfEmpty returns a pointer to s, or nil if s is "".
func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
