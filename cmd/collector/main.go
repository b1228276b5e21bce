// Command collector fetches the numbers of tracked videos and accounts from the sources. It runs collect.Command, which is in the folder
// cmd/internal/collect.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
)

func main() { os.Exit(boot.Main("collector", collect.Command)) }
