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

// maxLine is far beyond the longest link that is read: of a longer line no more is kept.
const maxLine = 64 << 10

// Run describes links until the input ends, or ctx: a read from a terminal cannot be called off.
func (linksCommand) Run(ctx context.Context, p boot.Process) error {
	done := make(chan error, 1)
	go func() { done <- describe(p.Stdin, p.Stdout) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// describe writes an answer before it waits for more input, so that both ends of a pipe can take turns.
func describe(r io.Reader, w io.Writer) error {
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

// readLine returns the next line without its end; of one that is longer than the buffer, only that it is: such a line means
// no link. The error is io.EOF with the last line when that has no end, or with nothing.
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
