// Command server is ReelTally's API.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/serve"
)

func main() { os.Exit(boot.Main("server", serve.Command)) }
