package link

import "strings"

// hosts lists the registered domain names of each platform. A host belongs to a platform if it is one of the platform's domain names or a
// subdomain of one.
var hosts = [...]struct {
	name     string
	platform Platform
}{
	{"tiktok.com", TikTok},
	{"tiktokv.com", TikTok}, // host of the links in TikTok's data exports
	{"tiktokv.us", TikTok},
	{"tiktokv.eu", TikTok},
	{"instagram.com", Instagram},
	{"instagr.am", Instagram},
	{"youtube.com", YouTube},
	{"youtu.be", YouTube},
	{"youtube-nocookie.com", YouTube},
	{"youtubekids.com", YouTube},
	{"youtube.googleapis.com", YouTube}, // host of the embedded player in old web pages
	{"facebook.com", Facebook},
	{"fb.com", Facebook},
	{"fb.watch", Facebook},
	{"fb.me", Facebook},
	{facebookOnion, Facebook},
}

// facebookOnion is Facebook's host in the Tor network.
const facebookOnion = "facebookwkhpilnemxj7asaniu7vnjjbiltxjqhye3mhbshg7kx5tfyd.onion"

// PlatformOfHost returns the platform of a host. The host can be in upper or lower case. PlatformOfHost returns false for hosts of no platform, and if a
// port or a dot follows the host.
func PlatformOfHost(host string) (Platform, bool) {
	platform, _, ok := lookUpHost(strings.ToLower(host))
	return platform, ok
}

// lookUpHost returns the platform of a host, and the domain name with which the host ends, such as
// "tiktok.com". It returns false for hosts of no platform. The host must be in lower case.
func lookUpHost(host string) (platform Platform, base string, ok bool) {
	for _, h := range hosts {
		rest, found := strings.CutSuffix(host, h.name)
		if !found {
			continue
		}
		if rest == "" {
			return h.platform, h.name, true
		}
		// A subdomain needs a dot before the domain name, so "eviltiktok.com" does not belong to
		// TikTok.
		if rest[len(rest)-1] == '.' && isLabelSequence(rest[:len(rest)-1]) {
			return h.platform, h.name, true
		}
	}
	return "", "", false
}

// isLabelSequence returns true if s is a sequence of labels of a host name, such as "www" or "www.m".
func isLabelSequence(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !consistsOf(label, 1, 63, isIDCharacter) {
			return false
		}
	}
	return true
}
