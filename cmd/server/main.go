// Command server runs the HTTP API. Its code is serve.Command in cmd/internal/serve, which runs package server.
package main

import (
	"os"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/serve"
)

func main() { os.Exit(boot.Main("server", serve.Command)) }
