package db

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	sqlitedriver "modernc.org/sqlite"
)

// dottedI matches an i and combining dots above it. Other programs convert the Turkish İ to an i and such a dot, but strings.ToLower converts it to i.
var dottedI = regexp.MustCompile("i\u0307+")

// FoldText returns the form in which hashtags and the texts of searches are stored and compared. The form is in lower case and has σ instead of ς. A
// letter with an accent is one character (Unicode form NFC). Different letters stay different: ß is not replaced by ss.
func FoldText(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = strings.ReplaceAll(strings.ToLower(norm.NFC.String(s)), "ς", "σ")
	if strings.Contains(s, "i\u0307") {
		s = dottedI.ReplaceAllLiteralString(s, "i")
	}
	return norm.NFC.String(s) // a capital letter and an accent can have no composed form although the small letter and the accent have one
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// registerFoldText adds FoldText to SQLite under the name fold_text, for the migrations. All connections that are opened later have this function.
var registerFoldText = sync.OnceValue(func() error {
	return sqlitedriver.RegisterDeterministicScalarFunction("fold_text", 1, func(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, ok := args[0].(string)
		if !ok {
			return nil, fmt.Errorf("fold_text needs a text, not a value of the type %T", args[0])
		}
		return FoldText(text), nil
	})
})
