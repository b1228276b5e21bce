package web

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/reeltally/reeltally/docs"
	"github.com/reeltally/reeltally/gen"
)

// repository is the beginning of the URLs of files in the public repository. A guide links to such a URL if a file is not a page of this
// server.
const repository = "https://github.com/reeltally/reeltally/blob/main/"

// guide is a document for people who use the dashboard or call the API.
type guide struct {
	Name  string // last part of the path of the guide's page
	Title string
	file  string // path of the document in the repository
	HTML  template.HTML
}

// readGuides returns the guides in the order of the table of contents. It converts them to HTML only once for all Pages of the process.
var readGuides = sync.OnceValues(func() ([]guide, error) {
	guides := []guide{
		{Name: "quickstart", Title: "Quick start", file: "docs/quickstart.md"},
		{Name: "dashboard", Title: "Dashboard", file: "docs/dashboard.md"},
		{Name: "concepts", Title: "Names and rules", file: "docs/concepts.md"},
		{Name: "clients", Title: "Client libraries, CSV", file: "docs/clients.md"},
		{Name: "go", Title: "Go client", file: "gen/client/README.md"},
		{Name: "typescript", Title: "TypeScript client", file: "gen/typescript/README.md"},
		{Name: "python", Title: "Python client", file: "gen/python/README.md"},
		{Name: "command-line", Title: "Command line", file: "docs/command-line.md"},
		{Name: "webhooks", Title: "Webhooks and events", file: "docs/webhooks.md"},
		{Name: "mcp", Title: "AI assistants", file: "docs/mcp.md"},
		{Name: "import", Title: "Import and export", file: "docs/import.md"},
		{Name: "proxies", Title: "Proxies", file: "docs/proxies.md"},
		{Name: "glossary", Title: "Glossary", file: "docs/glossary.md"},
	}
	for i := range guides {
		folder, name, _ := strings.Cut(guides[i].file, "/")
		source, err := fs.ReadFile(map[string]fs.FS{"docs": docs.Guides, "gen": gen.Readmes}[folder], name)
		if err != nil {
			return nil, err
		}
		if guides[i].HTML, err = renderGuide(source, guides[i].file, guides); err != nil {
			return nil, fmt.Errorf("%s: %w", guides[i].file, err)
		}
	}
	return guides, nil
})

// renderGuide converts a document from Markdown to HTML. It leaves out raw HTML and pictures, because a server does not have the files of the
// pictures. documentPath is the path of the document in the repository.
func renderGuide(source []byte, documentPath string, guides []guide) (template.HTML, error) {
	rewrite := guideLinks{documentPath, guides}
	// Table cells are aligned with the HTML attribute align, because the Content-Security-Policy of the pages forbids style attributes.
	table := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	markdown := goldmark.New(goldmark.WithExtensions(table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(rewrite, 100))))
	var out bytes.Buffer
	if err := markdown.Convert(source, &out); err != nil {
		return "", err
	}
	return template.HTML(out.String()), nil //nolint:gosec // safe, because the documents are files of this repository
}

// guideLinks changes the links of a document to other files, and removes its pictures. The new links lead to pages of this
// server, or to the files in the public repository.
type guideLinks struct {
	file   string
	guides []guide
}

// Transform replaces the address of each link in a parsed document by the result of newAddress, and removes the paragraphs that begin with a picture.
func (g guideLinks) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	for node := document.FirstChild(); node != nil; {
		next := node.NextSibling()
		if first := node.FirstChild(); first != nil && first.Kind() == ast.KindImage {
			document.RemoveChild(document, node)
		}
		node = next
	}
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // there is no error, because the function below never returns one
		if link, ok := node.(*ast.Link); ok && entering {
			link.Destination = []byte(g.newAddress(string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// newAddress returns the address that replaces a link. Links to pages of this server are relative,
// because a proxy can add a path prefix.
func (g guideLinks) newAddress(link string) string {
	name, fragment, _ := strings.Cut(link, "#")
	if name == "" || strings.Contains(name, "://") {
		return link
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	file := path.Join(path.Dir(g.file), name)
	switch file {
	case "openapi.yaml":
		return "../../openapi.yaml"
	case "docs/errors.md":
		return "../../errors" + fragment
	}
	for _, other := range g.guides {
		if other.file == file {
			return other.Name + fragment
		}
	}
	return repository + file + fragment
}

// sampleAddress is the address of the server in the samples of the guides.
const sampleAddress = "http://127.0.0.1:8080"

// showGuide shows the guide whose name is in the path. The samples have the address of this server.
func showGuide(v *visit) error {
	name := v.r.PathValue("name")
	for _, shown := range v.guides {
		if shown.Name == name {
			shown.HTML = template.HTML(strings.ReplaceAll(string(shown.HTML), sampleAddress, template.HTMLEscapeString(v.AppURL))) //nolint:gosec // safe, because the address is escaped
			return v.renderPage(http.StatusOK, "guide", wideSection, shown.Title, struct {
				Guide guide
				All   []guide
			}{shown, v.guides})
		}
	}
	return errNotFound
}
