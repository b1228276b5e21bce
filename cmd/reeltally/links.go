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

// Run describes the links of standard input until the input or ctx ends. A read from a terminal cannot be cancelled, so the reading
// goroutine can run longer than Run.
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

// readLine returns the next line without its line break. If the line is longer than the buffer, it returns "too long", which is not a
// link. The error is io.EOF if no line break follows, that is for an unterminated last line or at the end of the input.
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
