// Command collector asks the sources for the numbers of what is tracked.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/collect"
)

func main() { os.Exit(boot.Main("collector", collect.Command)) }
