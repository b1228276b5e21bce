package web

import (
	"html/template"
	"regexp"
	"strings"
	"time"
)

// utcTimeLayout is the layout of times in the texts of the API and of pages without JavaScript. utcTimePattern matches such a time.
const utcTimeLayout = "2006-01-02 15:04 UTC"

var utcTimePattern = regexp.MustCompile(`\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC`)

// formatTimes returns a text of the API, such as an explanation of a fetch status, as HTML. Each time in the text becomes an element that the
// script of the pages shows in the time zone of the browser.
func formatTimes(text any) template.HTML {
	var out strings.Builder
	rest := textOf(text)
	for _, found := range utcTimePattern.FindAllString(rest, -1) {
		before, after, _ := strings.Cut(rest, found)
		out.WriteString(template.HTMLEscapeString(before))
		if at, err := time.Parse(utcTimeLayout, found); err == nil {
			out.WriteString(`<time datetime="` + formatISO(at) + `" title="` + found + `" data-clock>` + found + `</time>`)
		} else {
			out.WriteString(found)
		}
		rest = after
	}
	out.WriteString(template.HTMLEscapeString(rest))
	return template.HTML(out.String()) //nolint:gosec // safe, because the parts between the times are escaped and a time has only digits and "-: UTC"
}
