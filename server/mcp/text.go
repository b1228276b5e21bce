package mcp

import (
	"regexp"
	"strings"
)

// toolText returns a description for a language model. Without the extension "x-tool-description",
// the result is the shortened description from the contract.
func toolText(extensions map[string]any, description string, shorten func(string) string) string {
	if own, ok := extensions["x-tool-description"].(string); ok {
		return oneLine(own)
	}
	return shorten(description)
}

// firstParagraph returns the text before the first blank line.
func firstParagraph(text string) string {
	paragraph, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	return oneLine(paragraph)
}

// sentenceEnd matches a full stop and the beginning of the next sentence.
var sentenceEnd = regexp.MustCompile("\\. [A-Z`]")

// firstSentence returns the first sentence of the first paragraph of text. A sentence ends at a full stop before a capital letter or a backquote.
func firstSentence(text string) string {
	text = firstParagraph(text)
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		return text[:end[0]+1]
	}
	return text
}

// oneLine replaces line breaks and repeated blanks by one blank.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// maxReason is the maximum length, in characters, of the message that says why an entry or a JSON-RPC call failed. Longer messages are cut.
const maxReason = 300
