// Command collector fetches the numbers of tracked videos and accounts from the sources. Its code is collect.Command in cmd/internal/collect,
// which runs package collector.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
)

func main() { os.Exit(boot.Main("collector", collect.Command)) }
