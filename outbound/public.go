package outbound

import "net/netip"

// IsPublic reports whether addr is an ordinary address of the internet: not of this machine, its networks or its
// cloud, not multicast, reserved or for documentation, and not an IPv6 form of an IPv4 address that is.
func IsPublic(addr netip.Addr) bool { return whyNotPublic(addr) == "" }

// special lists the ranges that the checks of netip leave open, after the registries of special-purpose addresses.
var special = [...]struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "of this network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier"}, // also the metadata address of one cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's own"},    // in a public range, but answers inside Azure only
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo is one of them: it carries an IPv4 address
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "an IPv4 address in IPv6"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
}

var (
	// globalUnicast is all of IPv6 that is given out.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	// translated is where a network without IPv4 shows the IPv4 internet: the last four bytes are the address.
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

// metadata are the addresses in private ranges at which clouds hand out a machine's credentials.
var metadata = [...]netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd00:c1::/32"), netip.MustParsePrefix("fd20:ce::/32"),
}

// isLocal reports whether addr is of this machine or of a private network, as a machine beside this one has it.
func isLocal(addr netip.Addr) bool {
	for _, prefix := range metadata {
		if prefix.Contains(addr) {
			return false
		}
	}
	return !addr.Is4In6() && addr.Zone() == "" && (addr.IsLoopback() || addr.IsPrivate())
}

// whyNotPublic completes the sentence "the address is …"; "" for a public one.
func whyNotPublic(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "no address"
	case addr.Zone() != "":
		return "bound to one interface"
	case addr.Is4In6():
		return "an IPv4 address in IPv6"
	case addr.IsUnspecified():
		return "unspecified"
	case addr.IsLoopback():
		return "this machine's own"
	case addr.IsPrivate():
		return "private"
	case addr.IsLinkLocalUnicast(): // also the metadata address of most clouds
		return "link-local"
	case addr.IsMulticast():
		return "multicast"
	case translated.Contains(addr):
		bytes := addr.As16()
		return whyNotPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	case addr.Is6() && !globalUnicast.Contains(addr):
		return "reserved"
	}
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.why
		}
	}
	return ""
}
