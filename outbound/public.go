package outbound

import (
	"net/netip"
	"strconv"
	"strings"
)

// IsPublic returns true if addr is an ordinary address on the internet. It returns false for local,
// private, multicast, reserved, documentation and cloud metadata addresses.
func IsPublic(addr netip.Addr) bool { return nonPublicReason(addr) == "" }

// NonPublicNameReason returns the reason why a host name never has a public address, such as "a name of a local network". For other names, and for
// the usual form of an IP address, it returns "". NonPublicNameReason does not ask the DNS.
func NonPublicNameReason(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil { // such as 127.1, 2130706433 or 0x7f.1: some resolvers read these as addresses
		return "no valid host name, because its last part is a number"
	}
	switch {
	case last == "localhost":
		return "a name of the machine itself"
	case last == "invalid":
		return "a name that never resolves"
	case last == name, last == "local", last == "internal", strings.HasSuffix("."+name, ".home.arpa"):
		return "a name of a local network"
	}
	return ""
}

// specialRanges lists the ranges of special-purpose addresses for which the package netip has no
// method such as IsPrivate. Most ranges are from IANA's registries.
var specialRanges = [...]struct {
	prefix netip.Prefix
	why    string // the reason for refusing the range, such as "reserved"
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "in the network 0.0.0.0/8"},
	{netip.MustParsePrefix("100.64.0.0/10"), "for carrier-grade NAT"},             // 100.100.100.200 is the metadata service of Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "used by a service inside Azure"}, // this address is not in IANA's registries of special addresses
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // this range contains the Teredo addresses, which embed IPv4 addresses
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "an IPv6 form of an IPv4 address"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
}

var (
	// globalUnicast is the range of all assigned public IPv6 addresses.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	// nat64Prefix is the range of NAT64 addresses (RFC 6052). The last four bytes of a NAT64 address are an IPv4 address.
	nat64Prefix = netip.MustParsePrefix("64:ff9b::/96")
)

// metadataRanges are the private IPv6 ranges of cloud metadata services. Such a service returns the credentials of a machine.
var metadataRanges = [...]netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd00:c1::/32"), netip.MustParsePrefix("fd20:ce::/32"),
}

// isLocal returns true for loopback and private addresses that are not in metadataRanges. A host may resolve to such an address if the
// operator configured the host.
func isLocal(addr netip.Addr) bool {
	for _, prefix := range metadataRanges {
		if prefix.Contains(addr) {
			return false
		}
	}
	return !addr.Is4In6() && addr.Zone() == "" && (addr.IsLoopback() || addr.IsPrivate())
}

// nonPublicReason returns the reason why an address is not public, such as "reserved". For a public address, it returns "".
func nonPublicReason(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "invalid"
	case addr.Zone() != "":
		return "valid only on one network interface"
	case addr.Is4In6():
		return "an IPv6 form of an IPv4 address"
	case addr.IsUnspecified():
		return "unspecified"
	case addr.IsLoopback():
		return "a loopback address"
	case addr.IsPrivate():
		return "private"
	case addr.IsLinkLocalUnicast(): // for example 169.254.169.254, the metadata service of most clouds
		return "link-local"
	case addr.IsMulticast():
		return "multicast"
	case nat64Prefix.Contains(addr): // a NAT64 address is public if its IPv4 address is public
		bytes := addr.As16()
		return nonPublicReason(netip.AddrFrom4([4]byte(bytes[12:])))
	case addr.Is6() && !globalUnicast.Contains(addr):
		return "reserved"
	}
	for _, s := range specialRanges {
		if s.prefix.Contains(addr) {
			return s.why
		}
	}
	return ""
}
