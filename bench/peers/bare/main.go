// Command bare is a server that uses only net/http and answers every request with the same bytes. The benchmark compares ReelTally's server
// with it, to measure the cost of the server's layers. The command reads the response as JSON from standard input, and prints the address of the server.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := serveAnswer(); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

// serveAnswer reads a response from standard input, and sends it in reply to every request until the process is killed.
func serveAnswer() error {
	var answer struct {
		Header http.Header
		Body   []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&answer); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // the process listens until it is killed
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	server := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), answer.Header)
		_, _ = w.Write(answer.Body)
	})}
	return server.Serve(listener)
}
