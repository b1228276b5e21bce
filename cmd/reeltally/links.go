package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store/link"
)

type linksCommand struct{}

// maxLine is the length in bytes of the longest accepted line of standard input. Valid links are much shorter.
const maxLine = 64 << 10

// Run prints what each link from standard input refers to, until the input or ctx ends.
func (linksCommand) Run(ctx context.Context, p boot.Process) error {
	done := make(chan error, 1)
	// The goroutine can continue after ctx ends, because a read from a terminal cannot be cancelled.
	go func() { done <- describeLines(p.Stdin, p.Stdout) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describeLines reads one link from each line, and writes a JSON object for each link.
func describeLines(r io.Reader, w io.Writer) error {
	in := bufio.NewReaderSize(r, maxLine)
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for ended := false; !ended; {
		line, err := readLine(in)
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return err
		}
		if !ended || len(line) > 0 {
			if err := encoder.Encode(link.Describe(string(line))); err != nil {
				return err
			}
		}
		// Before waiting for more input, flush. Another program may need this output to send its next link.
		if ended || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLine returns the next line without its line break. If the last line has no line break,
// readLine returns this line together with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
	// The line is too long for the buffer. Skip the rest of the line, and return a text that is not a valid
	// link, so that the caller reports an error for this line.
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return []byte("too long"), err
}
