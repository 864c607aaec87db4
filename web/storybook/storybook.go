// Package storybook holds one believable sample of every page, and of each
// page empty, with one row and with many. Tests render all of them in both
// languages; the preview command serves them for looking at.
package storybook

import (
	"context"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

// Now is the moment at which every sample is read.
func Now() time.Time { return time.Date(2026, 11, 30, 14, 5, 8, 0, time.UTC) }

// Story is one page in one condition.
type Story struct {
	Name string
	Page func(l web.Lang) templ.Component
}

// Locale is how the samples speak: English in Berlin, Chinese in Shanghai.
func Locale(l web.Lang) web.Locale {
	name := "Europe/Berlin"
	if l == web.Chinese {
		name = "Asia/Shanghai"
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	return web.Locale{Lang: l, Zone: zone, Now: Now()}
}

// Context makes components speak a language.
func Context(ctx context.Context, l web.Lang) context.Context {
	return web.WithLocale(ctx, Locale(l))
}

// Stories returns every sample, in the order of the navigation.
func Stories() []Story {
	var all []Story
	for _, some := range [][]Story{queueStories(), triageStories(), caseStories(), reconcileStories(), pauseStories(), actionStories(), afterStories(), listStories(), overviewStories(), taskStories(), adminStories(), gateStories(), demoStories()} {
		all = append(all, some...)
	}
	return all
}

func pick(l web.Lang, en, zh string) string {
	if l == web.Chinese {
		return zh
	}
	return en
}

func frame(l web.Lang, s web.Section) web.Frame {
	return web.Frame{
		Person:  &web.Person{Name: web.Outside(pick(l, "Ana Ruiz", "陈静")), Roles: []string{"support"}},
		Section: s, Path: "/" + string(s), Waiting: web.Count{N: 9},
	}
}

func adminFrame(l web.Lang, s web.Section) web.Frame {
	f := frame(l, s)
	f.Person = &web.Person{Name: web.Outside(pick(l, "Ines Vogel", "王敏")), Roles: []string{"admin", "support"}}
	return f
}

func at(hour, min, sec int) time.Time {
	return time.Date(2026, 11, 30, hour, min, sec, 0, time.UTC)
}

func in(min, sec int) time.Time {
	return Now().Add(time.Duration(min)*time.Minute + time.Duration(sec)*time.Second)
}
