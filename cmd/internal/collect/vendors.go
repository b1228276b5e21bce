package collect

import (
	"strings"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/vendor"
)

// Vendors has the settings of the vendors that sell metrics.
type Vendors struct {
	Vendor        []string      `setting:"REELTALLY_VENDOR" placeholder:"NAME" help:"Vendors to buy metrics from, separated by commas, in the order in which they are asked. A vendor is ${vendors}, or the path of a JSON file that describes it."`
	VendorKey     []boot.Secret `setting:"REELTALLY_VENDOR_KEY" placeholder:"KEY" help:"API key of each vendor, in the order of the vendors."`
	VendorBaseURL []string      `name:"vendor-base-url" setting:"REELTALLY_VENDOR_BASE_URL" placeholder:"URL" help:"Base URL of each vendor, in the order of the vendors. Without it, the URLs of the descriptions are used."`
}

func (c Vendors) enabled() bool { return len(c.Vendor) > 0 }

func (c Vendors) hasCustomURL() bool { return len(c.VendorBaseURL) > 0 }

func (c Vendors) check() error {
	switch {
	case len(c.Vendor) == 0 && len(c.VendorKey) > 0:
		return usagef("REELTALLY_VENDOR_KEY is set but REELTALLY_VENDOR is not: also set REELTALLY_VENDOR to one of the vendors %s, or to the path of a JSON file that describes the vendor", strings.Join(vendor.BuiltInVendorNames(), ", "))
	case len(c.Vendor) == 0 && len(c.VendorBaseURL) > 0:
		return usagef("REELTALLY_VENDOR_BASE_URL is set but REELTALLY_VENDOR is not: also set REELTALLY_VENDOR to one of the vendors %s, or to the path of a JSON file that describes the vendor", strings.Join(vendor.BuiltInVendorNames(), ", "))
	case len(c.Vendor) != len(c.VendorKey):
		return usagef("the number of vendors in REELTALLY_VENDOR is %d (%s), but the number of keys in REELTALLY_VENDOR_KEY is %d: each vendor needs its own key, in the same order",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorKey))
	case len(c.VendorBaseURL) > 0 && len(c.VendorBaseURL) != len(c.Vendor):
		return usagef("the number of vendors in REELTALLY_VENDOR is %d (%s), but the number of URLs in REELTALLY_VENDOR_BASE_URL is %d: set a URL for each vendor, in the same order, or no URL",
			len(c.Vendor), strings.Join(c.Vendor, ", "), len(c.VendorBaseURL))
	}
	return nil
}

func (c Vendors) sources(e environment) ([]source.Source, error) {
	var sources []source.Source
	for i, name := range c.Vendor {
		description, err := vendor.Load(name)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR is invalid: %w", err)
		}
		o := vendor.Options{Key: c.VendorKey[i].Reveal(), Client: e.client, Now: time.Now}
		if len(c.VendorBaseURL) > 0 {
			o.BaseURL = c.VendorBaseURL[i]
		}
		s, err := vendor.New(description, o)
		if err != nil {
			return nil, usagef("REELTALLY_VENDOR_BASE_URL or REELTALLY_VENDOR_KEY is invalid: %w", err)
		}
		sources = append(sources, s)
	}
	return sources, nil
}
