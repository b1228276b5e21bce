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

// maxLine is the length in bytes of the longest line that is parsed as a link. Valid links are much shorter.
const maxLine = 64 << 10

// Run prints a description of each link in standard input, until the input or ctx ends. A read from a terminal cannot be cancelled, so the
// goroutine that reads can still run when Run has returned.
func (linksCommand) Run(ctx context.Context, p boot.Process) error {
	done := make(chan error, 1)
	go func() { done <- describeLines(p.Stdin, p.Stdout) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describeLines writes a description of each line. It flushes the output before it waits for more input, so that a program can write a
// link and read its description before it writes the next link.
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
		if ended || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLine returns the next line without its line break. Instead of a line that is longer than the buffer, it returns "too long", which is
// not a valid link. If the line has no line break, because the input has ended, the error is io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return []byte("too long"), err
}
