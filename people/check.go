package people

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign/action"

	"golang.org/x/text/unicode/norm"
)

const (
	maxName  = 80  // characters of a person's or client's name
	maxOp    = 200 // bytes
	maxItem  = 200 // bytes of one tool, scope or actor id
	maxItems = 500 // of a list
)

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

// spelled reports whether s has the right length in bytes, begins with a
// character of first and goes on with characters of rest.
func spelled(s, first, rest string, shortest, longest int) bool {
	return shortest <= len(s) && len(s) <= longest && strings.Trim(s[:1], first) == "" && strings.Trim(s[1:], rest) == ""
}

// check collects everything that is wrong with a request.
type check struct{ refusal *action.Refusal }

func (c *check) fail(pointer, reason, detail string) {
	if c.refusal == nil {
		c.refusal = action.Refuse(action.InvalidArgument, "Some fields cannot be taken. Nothing was changed.").Because(reason)
	}
	c.refusal.At(pointer, detail)
}

func (c *check) err() error { return orNil(c.refusal) }

// username returns the name to sign in with, in its one spelling.
func (c *check) username(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if !spelled(s, letters+digits, letters+digits+"._@-", 2, 64) {
		c.fail("/username", "username", "use 2 to 64 of the characters a-z, 0-9 and . _ - @, a letter or digit first")
	}
	return s
}

// name returns a display name in its one spelling. Characters that cannot be
// seen are refused: two names must not look alike.
func (c *check) name(s string) string {
	s = norm.NFC.String(strings.TrimSpace(s))
	n := utf8.RuneCountInString(s)
	if n < 1 || n > maxName || !visible(s) {
		c.fail("/name", "name", fmt.Sprintf("use 1 to %d characters, none of them invisible", maxName))
	}
	return s
}

// blanks are letters and symbols without ink: Hangul fillers, Braille blank.
const blanks = "\u115f\u1160\u3164\uffa0\u2800"

func visible(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(blanks, r)
	})
}

func (c *check) grants(g Grants) {
	for _, r := range g.Roles {
		if !spelled(r, letters, letters+digits+"_-", 1, 32) {
			c.fail("/roles", "role-name", "a role is 1 to 32 of the characters a-z, 0-9, _ and -, a letter first: "+quoted(r))
		}
	}
	if slices.Contains(g.Roles, RoleAuditor) && len(deciding(without(g.Roles, RoleAuditor))) > 0 {
		c.fail("/roles", "auditor-decides-nothing", "an auditor decides nothing: give the deciding roles to another person")
	}
	c.list("/tools", g.Tools)
	c.list("/scopes", g.Scopes)
	c.list("/actors", g.Actors)
}

func (c *check) clientGrants(g ClientGrants) {
	known := []string{RoleProposer, RoleExecutor, RoleReader, RoleAdmin}
	if len(g.Roles) == 0 {
		c.fail("/roles", "role-missing", "choose at least one of "+strings.Join(known, ", "))
	}
	c.among("/roles", g.Roles, known)
	c.list("/tools", g.Tools)
	c.list("/scopes", g.Scopes)
	c.among("/entries", g.Entries, []string{"chat", "background", "workflow"})
}

func (c *check) among(pointer string, given, known []string) {
	for _, s := range given {
		if !slices.Contains(known, s) {
			c.fail(pointer, "choice", "must be one of "+strings.Join(known, ", ")+", not "+quoted(s))
		}
	}
}

func (c *check) list(pointer string, items []string) {
	if len(items) > maxItems {
		c.fail(pointer, "list-long", fmt.Sprintf("at most %d", maxItems))
	}
	for _, s := range items {
		if s = strings.TrimSpace(s); s == "" || len(s) > maxItem || !visible(s) {
			c.fail(pointer, "list-item", fmt.Sprintf("each is 1 to %d bytes of visible characters", maxItem))
			return
		}
	}
}

// place checks language and time zone. Empty means English, UTC.
func (c *check) place(lang, zone string) (string, string) {
	if lang == "" {
		lang = "en"
	}
	if zone == "" {
		zone = "UTC"
	}
	c.among("/lang", []string{lang}, []string{"en", "zh"})
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
		c.fail("/zone", "zone", "use a name such as Europe/Berlin or Asia/Shanghai")
	}
	return lang, zone
}

func (c *check) command(cmd Command) {
	if cmd.Op == "" || len(cmd.Op) > maxOp || !visible(cmd.Op) {
		c.fail("/op", "op", fmt.Sprintf("the form's hidden op is missing or longer than %d bytes: open the page again", maxOp))
	}
}

// tidy returns a list in its one spelling: trimmed, sorted, each once, never nil.
func tidy(items []string) []string {
	list := make([]string, 0, len(items))
	for _, s := range items {
		list = append(list, strings.TrimSpace(s))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func without(items []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(s string) bool { return s == item })
}
