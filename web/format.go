package web

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// soonBelow is the time left under which a deadline is shown inverted.
const soonBelow = 3 * time.Minute

// Clock writes a time of day in UTC with seconds, "14:02:11"; pages say once,
// in the foot, that bare times are UTC. Another day than today's adds the date.
func Clock(ctx context.Context, t time.Time) string {
	return withDay(ctx, t.UTC(), t.UTC().Format("15:04:05"), time.UTC)
}

// Minute writes a time of day in UTC without seconds, "14:03".
func Minute(ctx context.Context, t time.Time) string {
	return withDay(ctx, t.UTC(), t.UTC().Format("15:04"), time.UTC)
}

// BothZones writes a time in UTC and in the viewer's zone,
// "14:16:50 UTC, 15:16:50 Berlin".
func BothZones(ctx context.Context, t time.Time) string {
	return bothZones(ctx, t, "15:04:05")
}

// bothMinutes is BothZones without seconds.
func bothMinutes(ctx context.Context, t time.Time) string { return bothZones(ctx, t, "15:04") }

func bothZones(ctx context.Context, t time.Time, layout string) string {
	l := LocaleOf(ctx)
	utc := withDay(ctx, t.UTC(), t.UTC().Format(layout), time.UTC)
	if isUTC(l.Zone) {
		return T(ctx, "time.utc", "at", utc)
	}
	local := t.In(l.Zone)
	here := local.Format(layout)
	if local.YearDay() != t.UTC().YearDay() {
		here = T(ctx, "time.on_day", "day", ShortDay(ctx, local), "at", here)
	}
	return T(ctx, "time.both", "utc", utc, "local", here, "city", City(ctx, l.Zone))
}

// Stamp writes day and minute in UTC and the viewer's time of day, for heads
// of what is over: "30 November 2026, 14:06 UTC, 15:06 Berlin".
func Stamp(ctx context.Context, t time.Time) string {
	l := LocaleOf(ctx)
	utc := t.UTC().Format("15:04")
	if isUTC(l.Zone) {
		return T(ctx, "time.stamp_utc", "day", Day(ctx, t.UTC()), "at", utc)
	}
	local := t.In(l.Zone)
	here := local.Format("15:04")
	if local.YearDay() != t.UTC().YearDay() {
		here = T(ctx, "time.on_day", "day", ShortDay(ctx, local), "at", here)
	}
	return T(ctx, "time.stamp", "day", Day(ctx, t.UTC()), "utc", utc, "local", here, "city", City(ctx, l.Zone))
}

// onDay writes a time of day without seconds and always its date.
func onDay(ctx context.Context, t time.Time) string {
	return T(ctx, "time.on_day", "day", ShortDay(ctx, t), "at", t.Format("15:04"))
}

// untilOf writes the end of a window that begins at from: with its date where
// that is another one.
func untilOf(ctx context.Context, from, to time.Time) string {
	if sameDay(from, to) {
		return to.Format("15:04")
	}
	return onDay(ctx, to)
}

// withDay puts the date before a time of day that is not today's.
func withDay(ctx context.Context, t time.Time, clock string, zone *time.Location) string {
	now := LocaleOf(ctx).Now
	if now.IsZero() || sameDay(t, now.In(zone)) {
		return clock
	}
	return T(ctx, "time.on_day", "day", ShortDay(ctx, t), "at", clock)
}

func sameDay(a, b time.Time) bool {
	return a.Year() == b.Year() && a.YearDay() == b.YearDay()
}

// Day writes a date in words, "30 November 2026", in the zone t carries.
func Day(ctx context.Context, t time.Time) string {
	return T(ctx, "time.day", "day", t.Day(), "month", T(ctx, monthKey(t, "long")), "year", t.Year())
}

// ShortDay writes a date without the year unless it is another one, "9 Nov".
func ShortDay(ctx context.Context, t time.Time) string {
	month := T(ctx, monthKey(t, "short"))
	if now := LocaleOf(ctx).Now; now.IsZero() || now.Year() == t.Year() {
		return T(ctx, "time.short_day", "day", t.Day(), "month", month)
	}
	return T(ctx, "time.short_day_year", "day", t.Day(), "month", month, "year", t.Year())
}

func monthKey(t time.Time, form string) string {
	return fmt.Sprintf("month.%s.m%d", form, int(t.Month()))
}

// Left writes how long until a deadline: "11:42", "3 h 04 m", "2 d 3 h". What
// is over is "00:00".
func Left(ctx context.Context, until time.Time) string {
	d := max(until.Sub(LocaleOf(ctx).Now), 0).Truncate(time.Second)
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return T(ctx, "time.hours", "h", int(d.Hours()), "m", fmt.Sprintf("%02d", int(d.Minutes())%60))
	default:
		return T(ctx, "time.days", "d", int(d.Hours())/24, "h", int(d.Hours())%24)
	}
}

// soon reports whether a deadline is close or over.
func soon(ctx context.Context, until time.Time) bool {
	return until.Sub(LocaleOf(ctx).Now) < soonBelow
}

// Span writes a duration in words with one unit or two: "32 s", "12 min", "1 h 40 min".
func Span(ctx context.Context, d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return T(ctx, "span.seconds", "v", int(d.Seconds()))
	case d < time.Hour && d%time.Minute == 0:
		return T(ctx, "span.minutes", "v", int(d.Minutes()))
	case d < time.Hour:
		return T(ctx, "span.minutes_seconds", "v", int(d.Minutes()), "s", int(d.Seconds())%60)
	case d < 48*time.Hour && d%time.Hour < time.Minute:
		return T(ctx, "span.hours", "v", int(d.Hours()))
	case d < 48*time.Hour:
		return T(ctx, "span.hours_minutes", "v", int(d.Hours()), "m", int(d.Minutes())%60)
	default:
		return T(ctx, "span.days", "v", int(d.Hours())/24)
	}
}

// Ago writes how long ago something was, as of when the page was read.
func Ago(ctx context.Context, t time.Time) string {
	d := LocaleOf(ctx).Now.Sub(t)
	if d < time.Minute {
		return T(ctx, "time.just_now")
	}
	return T(ctx, "time.ago", "span", Span(ctx, d.Truncate(time.Minute)))
}

// City is the last part of a zone's name, in the viewer's language when there
// is a word for it: "Berlin", "上海".
func City(ctx context.Context, zone *time.Location) string {
	name := zone.String()
	if key := "city." + strings.ReplaceAll(name, "/", "_"); known(key) {
		return T(ctx, key)
	}
	return strings.ReplaceAll(name[strings.LastIndex(name, "/")+1:], "_", " ")
}

// Offset is a zone's distance from UTC at t: "UTC", "UTC+1", "UTC+5:30".
func Offset(t time.Time, zone *time.Location) string {
	_, sec := t.In(zone).Zone()
	if sec == 0 {
		return "UTC"
	}
	sign := "+"
	if sec < 0 {
		sign, sec = "−", -sec
	}
	out := fmt.Sprintf("UTC%s%d", sign, sec/3600)
	if m := sec % 3600 / 60; m != 0 {
		out += fmt.Sprintf(":%02d", m)
	}
	return out
}

func isUTC(z *time.Location) bool {
	return z == nil || z.String() == "UTC" || z.String() == "Etc/UTC"
}
