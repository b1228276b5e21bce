package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is a part of a SQL statement: a word, a parameter, a literal, a punctuation mark, or a group in parentheses.
type node struct {
	kind       nodeKind
	text       string // the text of the node; words are in lower case and without quotes
	quoted     bool   // the word is a quoted name, and so not a keyword
	kids       []node // the nodes inside of a group
	index      int    // for a parameter: the index of its value in the arguments of the statement
	start, end int    // position in the statement, in bytes; end is exclusive
}

type nodeKind int

const (
	wordNode nodeKind = iota
	parameterNode
	literalNode
	markNode
	groupNode
)

// isKeyword returns true if the node is a word without quotes, and the list "keywords" contains this word. The list must be in lower case.
func (n node) isKeyword(keywords ...string) bool {
	if n.kind != wordNode || n.quoted {
		return false
	}
	return slices.Contains(keywords, n.text)
}

// isMark returns true if the node is a punctuation mark with the text s.
func (n node) isMark(s string) bool { return n.kind == markNode && n.text == s }

// isName returns true if the node is a word or a quoted name.
func (n node) isName() bool { return n.kind == wordNode }

// isQuery returns true if the node is a subquery in parentheses.
func (n node) isQuery() bool {
	if n.kind != groupNode || len(n.kids) == 0 {
		return false
	}
	first := n.kids[0]
	return first.isKeyword("select", "with", "values", "table") || (len(n.kids) > 1 && first.isQuery() && n.kids[1].isKeyword("union", "except", "intersect"))
}

// parseStatement splits a SQL statement of SQLite or PostgreSQL into nodes. It returns an error for
// unknown syntax, so it never skips a part.
func parseStatement(statement string) ([]node, error) {
	p := parser{s: statement}
	nodes, err := p.readNodes(false)
	if err != nil {
		return nil, fmt.Errorf("%w at byte %d", err, p.at)
	}
	return nodes, nil
}

type parser struct {
	s  string
	at int // position of the next byte to read
	// questions is the number of "?" parameters before the next byte to read.
	questions int
}

// remainingText returns the part of the statement that is not read yet.
func (p *parser) remainingText() string { return p.s[p.at:] }

// readNodes reads nodes up to the end of the statement. If inGroup is true, it reads only up to the closing parenthesis.
func (p *parser) readNodes(inGroup bool) ([]node, error) {
	var out []node
	for {
		if err := p.skipBlanks(); err != nil {
			return nil, err
		}
		start := p.at
		switch {
		case p.remainingText() == "":
			if inGroup {
				return nil, errors.New("a parenthesis is not closed")
			}
			return out, nil
		case p.s[p.at] == ')':
			if !inGroup {
				return nil, errors.New("a parenthesis was not opened")
			}
			p.at++
			return out, nil
		case p.s[p.at] == '(':
			p.at++
			kids, err := p.readNodes(true)
			if err != nil {
				return nil, err
			}
			out = append(out, node{kind: groupNode, kids: kids, start: start, end: p.at})
		default:
			n, err := p.readNode()
			if err != nil {
				return nil, err
			}
			n.start, n.end = start, p.at
			out = append(out, n)
		}
	}
}

// skipBlanks skips white space and comments.
func (p *parser) skipBlanks() error {
	for p.remainingText() != "" {
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", rune(p.s[p.at])):
			p.at++
		case strings.HasPrefix(p.remainingText(), "--"):
			_, after, found := strings.Cut(p.remainingText(), "\n")
			if !found {
				after = ""
			}
			p.at = len(p.s) - len(after)
		case strings.HasPrefix(p.remainingText(), "/*"):
			// Refuse nested comments: PostgreSQL reads a comment inside a comment, SQLite does not.
			end := strings.Index(p.remainingText()[2:], "*/")
			if end < 0 || strings.Contains(p.remainingText()[2:2+end], "/*") {
				return errors.New("a comment is not closed, or contains another comment")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// readNode reads one node that is not a group in parentheses.
func (p *parser) readNode() (node, error) {
	c := p.s[p.at]
	switch {
	case c == '\'':
		text, err := p.readQuoted('\'')
		return node{kind: literalNode, text: text}, err
	case c == '"' || c == '`':
		text, err := p.readQuoted(c)
		return node{kind: wordNode, quoted: true, text: strings.ToLower(text)}, err
	case c == '?':
		p.at++
		p.questions++
		return node{kind: parameterNode, text: "?", index: p.questions - 1}, nil
	case c == '$' && len(p.remainingText()) > 1 && isDigit(p.s[p.at+1]):
		p.at++
		digits := p.readWhile(isDigit)
		number, err := strconv.Atoi(digits)
		return node{kind: parameterNode, text: "$" + digits, index: number - 1}, err
	case c == '$':
		return node{}, errors.New("a string between dollar signs is not allowed")
	case isDigit(c):
		return node{kind: literalNode, text: p.readWhile(func(c byte) bool { return canBeginWord(c) || isDigit(c) || c == '.' })}, nil
	case canBeginWord(c):
		text := strings.ToLower(p.readWhile(func(c byte) bool { return canBeginWord(c) || isDigit(c) || c == '$' }))
		if text == "e" && strings.HasPrefix(p.remainingText(), "'") {
			return node{}, errors.New("a string with escapes (E'…') is not allowed")
		}
		return node{kind: wordNode, text: text}, nil
	}
	for _, mark := range []string{"->>", "::", "<=", ">=", "<>", "!=", "||", "=="} {
		if strings.HasPrefix(p.remainingText(), mark) {
			p.at += len(mark)
			return node{kind: markNode, text: mark}, nil
		}
	}
	p.at++
	return node{kind: markNode, text: string(c)}, nil
}

// readQuoted reads a text in quotes and returns it without the quotes. Two quotes in a row inside the text stand for one quote.
func (p *parser) readQuoted(quote byte) (string, error) {
	var text strings.Builder
	for p.at++; p.remainingText() != ""; p.at++ {
		if p.s[p.at] == quote {
			if len(p.remainingText()) < 2 || p.s[p.at+1] != quote {
				p.at++
				return text.String(), nil
			}
			p.at++
		}
		text.WriteByte(p.s[p.at])
	}
	return "", errors.New("a quote is not closed")
}

// readWhile reads bytes until the given function returns false for a byte. It returns the bytes before this byte.
func (p *parser) readWhile(is func(byte) bool) string {
	start := p.at
	for p.remainingText() != "" && is(p.s[p.at]) {
		p.at++
	}
	return p.s[start:p.at]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// canBeginWord returns true if a word can begin with the byte c.
func canBeginWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// splitAt splits nodes at each node for which isSeparator returns true. The result does not contain these separators.
func splitAt(nodes []node, isSeparator func(node) bool) [][]node {
	var parts [][]node
	start := 0
	for i, n := range nodes {
		if isSeparator(n) {
			parts, start = append(parts, nodes[start:i]), i+1
		}
	}
	return append(parts, nodes[start:])
}

// keywordAt returns the index of the first node that is one of the keywords. It does not look into parentheses. It returns len(nodes) if no
// node is a keyword.
func keywordAt(nodes []node, keywords ...string) int {
	for i, n := range nodes {
		if n.isKeyword(keywords...) && (i <= 0 || !nodes[i-1].isMark(".")) {
			return i
		}
	}
	return len(nodes)
}
