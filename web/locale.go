package web

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed locales/*.toml
var localeFiles embed.FS

// Lang is a language the pages speak.
type Lang string

// The languages there are words for.
const (
	English Lang = "en"
	Chinese Lang = "zh"
)

// Langs lists the languages in the order in which the switch shows them.
func Langs() []Lang { return []Lang{English, Chinese} }

// tag is the value of the lang attribute.
func (l Lang) tag() string {
	if l == Chinese {
		return "zh-Hans"
	}
	return "en"
}

// text is sentences one after the other: Chinese has no space between them.
func (l Lang) text(sentences []string) string {
	if l == Chinese {
		return strings.Join(sentences, "")
	}
	return strings.Join(sentences, " ")
}

// ParseLang recognises a language that was chosen or stored; anything else is
// English and false.
func ParseLang(s string) (Lang, bool) {
	for _, l := range Langs() {
		if string(l) == s {
			return l, true
		}
	}
	return English, false
}

// MatchLang picks the language for an Accept-Language header.
func MatchLang(acceptLanguage string) Lang {
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return English
	}
	matcher := language.NewMatcher([]language.Tag{language.English, language.SimplifiedChinese})
	if _, i, _ := matcher.Match(wanted...); i == 1 {
		return Chinese
	}
	return English
}

// Locale is how pages speak to one viewer, and when.
type Locale struct {
	Lang Lang
	Zone *time.Location // the viewer's zone; nil is UTC
	Now  time.Time      // the database's clock when the page was read
}

type localeKey struct{}

type speaker struct {
	Locale
	words *i18n.Localizer
}

// WithLocale makes every component rendered with the context speak l.
func WithLocale(ctx context.Context, l Locale) context.Context {
	if l.Zone == nil {
		l.Zone = time.UTC
	}
	if l.Lang == "" {
		l.Lang = English
	}
	return context.WithValue(ctx, localeKey{}, speaker{l, localizer(l.Lang)})
}

// LocaleOf returns the locale that WithLocale set, else English and UTC.
func LocaleOf(ctx context.Context) Locale { return speakerOf(ctx).Locale }

func speakerOf(ctx context.Context) speaker {
	if s, ok := ctx.Value(localeKey{}).(speaker); ok {
		return s
	}
	return speaker{Locale{Lang: English, Zone: time.UTC}, localizer(English)}
}

// in returns the context speaking another language, for sentences that a page
// shows in both.
func in(ctx context.Context, l Lang) context.Context {
	at := LocaleOf(ctx)
	at.Lang = l
	return WithLocale(ctx, at)
}

// dictionary is the parsed locale files; built once, never changed.
type dictionary struct {
	bundle *i18n.Bundle
	keys   map[string]bool // of the English file
}

var words = sync.OnceValues(loadWords)

func loadWords() (dictionary, error) {
	d := dictionary{bundle: i18n.NewBundle(language.English), keys: map[string]bool{}}
	d.bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	for _, l := range Langs() {
		file, err := d.bundle.LoadMessageFileFS(localeFiles, "locales/"+string(l)+".toml")
		if err != nil {
			return d, fmt.Errorf("reading the words of %s: %w", l, err)
		}
		if l == English {
			for _, m := range file.Messages {
				d.keys[m.ID] = true
			}
		}
	}
	return d, nil
}

func localizer(l Lang) *i18n.Localizer {
	d, _ := words() // a broken file fails the tests; here keys show in place of words
	return i18n.NewLocalizer(d.bundle, string(l))
}

// known reports whether there are words for key.
func known(key string) bool {
	d, err := words()
	return err == nil && d.keys[key]
}

// firstKnown returns the first key that has words, else the last one.
func firstKnown(keys ...string) string {
	for _, k := range keys {
		if known(k) {
			return k
		}
	}
	return keys[len(keys)-1]
}

// say looks a key up; data holds what the sentence refers to, n (when there)
// decides between one and many.
func (s speaker) say(key string, data map[string]any) string {
	cfg := &i18n.LocalizeConfig{MessageID: key, TemplateData: data}
	if n, ok := data["n"]; ok {
		cfg.PluralCount = n
	}
	out, err := s.words.Localize(cfg)
	if out == "" && err != nil {
		return key
	}
	return strings.TrimSpace(out)
}
