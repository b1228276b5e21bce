// Command server runs the HTTP API. It runs serve.Command, which is in the folder cmd/internal/serve.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/serve"
)

func main() { os.Exit(boot.Main("server", serve.Command)) }
