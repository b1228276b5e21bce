package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// loginFile has the setting for the path of the file in which `reeltally login` stores the server's address and the token.
type loginFile struct {
	LoginFile string `setting:"REELTALLY_LOGIN_FILE" placeholder:"FILE" help:"File with the address and the token that \"reeltally login\" stored. Without it, reeltally/login.json in the user's folder of settings."`
}

// savedLogin is the JSON content of the login file.
type savedLogin struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// path returns the path of the login file: the value of the flag or of REELTALLY_LOGIN_FILE, or else reeltally/login.json in the user's folder of
// settings.
func (f loginFile) path() (string, error) {
	if f.LoginFile != "" {
		return f.LoginFile, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("the folder of settings is unknown (%w); set REELTALLY_LOGIN_FILE", err)
	}
	return filepath.Join(folder, "reeltally", "login.json"), nil
}

// readLogin returns the stored login, or an empty login if nothing is stored.
func (f loginFile) readLogin() (savedLogin, error) {
	path, err := f.path()
	if err != nil {
		return savedLogin{}, err
	}
	data, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrNotExist) {
		return savedLogin{}, nil
	}
	if err != nil {
		return savedLogin{}, err
	}
	var saved savedLogin
	if json.Unmarshal(data, &saved) != nil {
		return savedLogin{}, fmt.Errorf("%s is damaged; run \"reeltally login\" again", path)
	}
	return saved, nil
}

// writeLogin stores the login in the file. Only the owner of the file can read it. If writeLogin is interrupted, the file has either the old or the
// new content.
func (f loginFile) writeLogin(saved savedLogin) (err error) {
	path, err := f.path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "login-*") // CreateTemp creates files with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(writeJSON(file, saved), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// addLoginAdvice adds the advice to log in with a valid token, if the error has the status 401. It returns other errors unchanged.
func addLoginAdvice(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w; run \"reeltally login\" with a valid token", err)
	}
	return err
}

type loginCommand struct {
	URL string `name:"url" setting:"REELTALLY_URL" placeholder:"URL" required:"" help:"Address of the server, for example https://reeltally.example.com."`
	loginFile
}

// Help returns the text that --help shows below the summary of the command.
func (loginCommand) Help() string {
	return "The token is read from the terminal, without showing it, or from standard input. The server checks it before it is stored.\n\n" +
		"Examples: reeltally login --url https://reeltally.example.com\n" +
		"or: reeltally login --url http://127.0.0.1:8080 < data/demo-token"
}

// Run reads a token, checks it with a request to the server, and stores it with the address of the server.
func (c *loginCommand) Run(ctx context.Context, p boot.Process) error {
	address := strings.TrimRight(c.URL, "/")
	if err := boot.CheckBaseURL("REELTALLY_URL", address); err != nil {
		return err
	}
	token, err := readToken(p)
	if err != nil {
		return err
	}
	api, err := client.New(address, token)
	if err != nil {
		return err
	}
	found, err := api.Authenticate(ctx)
	if err != nil {
		return err
	}
	if err := c.writeLogin(savedLogin{address, token}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Logged in to %s as %s.\n", address, plainText(found.Organisation.Name))
	return err
}

// readToken reads a token from standard input. On a terminal, it asks for the token and does not
// show what is typed.
func readToken(p boot.Process) (string, error) {
	var token string
	if file, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		_, _ = fmt.Fprint(p.Stderr, "Token: ")
		typed, err := term.ReadPassword(int(file.Fd()))
		_, _ = fmt.Fprintln(p.Stderr)
		if err != nil {
			return "", err
		}
		token = string(typed)
	} else if p.Stdin != nil {
		line, err := bufio.NewReader(io.LimitReader(p.Stdin, maxLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		token = line
	}
	if token = strings.TrimSpace(token); token == "" {
		return "", boot.UsageError{Err: errors.New("the token is missing: type it, or send it to standard input")}
	}
	return token, nil
}

type logoutCommand struct{ loginFile }

// Run deletes the stored login. The token stays valid.
func (c *logoutCommand) Run(p boot.Process) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	err = os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		_, err = fmt.Fprintln(p.Stdout, "No login was stored.")
		return err
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, "Logged out. The token is still valid; an administrator can revoke it.")
	return err
}
