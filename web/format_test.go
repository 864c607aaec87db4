package web

import (
	"context"
	"strings"
	"testing"
	"time"
)

func speaking(t *testing.T, l Lang, zone string) context.Context {
	t.Helper()
	z, err := time.LoadLocation(zone)
	if err != nil {
		t.Skip("no time zones on this machine")
	}
	return WithLocale(context.Background(), Locale{Lang: l, Zone: z, Now: time.Date(2026, 11, 30, 14, 5, 8, 0, time.UTC)})
}

// REPORTS 21: a time never passes for one of another zone.
func TestReport21_TimesNameTheirZone(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 16, 50, 0, time.UTC)
	for _, c := range []struct {
		lang Lang
		zone string
		at   time.Time
		want string
	}{
		{English, "UTC", at, "14:16:50 UTC"},
		{English, "Europe/Berlin", at, "14:16:50 UTC, 15:16:50 Berlin"},
		{Chinese, "Asia/Shanghai", at, "UTC 14:16:50，上海 22:16:50"},
		{English, "Asia/Kolkata", at, "14:16:50 UTC, 19:46:50 Kolkata"},
		{English, "Asia/Shanghai", at.Add(2 * time.Hour), "16:16:50 UTC, 1 Dec 00:16:50 Shanghai"},
		{English, "UTC", at.AddDate(0, 0, -21), "9 Nov 14:16:50 UTC"},
		{Chinese, "UTC", at.AddDate(-1, 0, 0), "UTC 2025 年 11 月 30 日 14:16:50"},
	} {
		if got := BothZones(speaking(t, c.lang, c.zone), c.at); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.lang, c.zone, got, c.want)
		}
	}
	if got := Stamp(speaking(t, English, "Europe/Berlin"), at); got != "30 November 2026, 14:16 UTC, 15:16 Berlin" {
		t.Errorf("stamp %q", got)
	}
}

func TestTimeLeft(t *testing.T) {
	ctx := speaking(t, English, "UTC")
	now := LocaleOf(ctx).Now
	for d, want := range map[time.Duration]string{
		11*time.Minute + 42*time.Second: "11:42", time.Second: "00:01", -time.Hour: "00:00", 59*time.Minute + 59*time.Second: "59:59",
		3*time.Hour + 4*time.Minute: "3 h 04 m", 51 * time.Hour: "2 d 3 h",
	} {
		if got := Left(ctx, now.Add(d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if soon(ctx, now.Add(3*time.Minute)) || !soon(ctx, now.Add(3*time.Minute-time.Second)) {
		t.Error("soon begins at another moment than under three minutes")
	}
}

func TestSpans(t *testing.T) {
	ctx := speaking(t, English, "UTC")
	for d, want := range map[time.Duration]string{32 * time.Second: "32 s", 12 * time.Minute: "12 min", 100 * time.Second: "1 min 40 s", 24 * time.Hour: "24 h", 5*time.Hour + 20*time.Minute: "5 h 20 min", 72 * time.Hour: "3 d"} {
		if got := Span(ctx, d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := Ago(ctx, LocaleOf(ctx).Now.Add(-12*time.Minute-30*time.Second)); got != "12 min ago" {
		t.Errorf("ago %q", got)
	}
}

func TestOffsets(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, sec := range map[string]int{"UTC": 0, "UTC+1": 3600, "UTC+5:30": 19800, "UTC−8": -28800} {
		if got := Offset(at, time.FixedZone("x", sec)); got != name {
			t.Errorf("%d s: %q, want %q", sec, got, name)
		}
	}
}

func TestFingerprints(t *testing.T) {
	const hash = "sha256:85c0cf3a6b7ba065d9225cb3657c21abbcc5985202b56facc80717576ff280fc"
	if got := Fingerprint(hash); got != "85c0cf3a" {
		t.Error(got)
	}
	if got := LongFingerprint(hash); got != "85c0cf3a…6ff280fc" {
		t.Error(got)
	}
	if Fingerprint("") != "" || LongFingerprint("sha256:ab") != "ab" {
		t.Error("a short hash is not shown as it is")
	}
}

func TestStatesInWords(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 3, 0, 0, time.UTC)
	for _, c := range []struct {
		s      Status
		en, zh string
	}{
		{Status{State: Accepted, System: Outside("PayHub")}, "Accepted by PayHub, completion not proven", "PayHub已受理，未证实完成"},
		{Status{State: Applied, How: HowReadBack, At: at}, "Done, read back 14:03", "已完成（14:03 回读核实）"},
		{Status{State: Applied, How: HowReported}, "Done per the business system, not read back", "业务系统报告完成（未回读）"},
		{Status{State: Failed, How: HowSettled, Person: Outside("Jonas")}, "Not done: settled by Jonas", "未办成：Jonas认定"},
		{Status{State: Applied, How: HowSettled, Person: Outside("Jonas"), Second: Outside("Mia")}, "Done, settled by Jonas, agreed by Mia", "已完成（Jonas认定，Mia同意）"},
		{Status{State: Failed, How: HowUnrun, System: Outside("catalog")}, "Not done: catalog says it was never executed", "未办成：catalog表示从未执行"},
		{Status{State: Expired, How: HowLapsed}, "Approved, not run in time", "已批准，逾期未执行"},
		{Status{State: Rejected}, "Rejected, this will not run", "已拒绝，不执行"},
	} {
		if got := c.s.Words().Plain(speaking(t, English, "UTC")); got != c.en {
			t.Errorf("%q, want %q", got, c.en)
		}
		if got := c.s.Words().Plain(speaking(t, Chinese, "UTC")); got != c.zh {
			t.Errorf("%q, want %q", got, c.zh)
		}
	}
	for _, s := range States() {
		for _, l := range Langs() {
			if got := (Status{State: s}).Words().Plain(speaking(t, l, "UTC")); got == "state."+string(s)+".plain" {
				t.Errorf("no words for %s in %s", s, l)
			}
		}
	}
}

func TestRefusalsFindTheFinestWords(t *testing.T) {
	ctx := speaking(t, English, "UTC")
	for _, c := range []struct{ code, reason, want string }{
		{"already-decided", "rejected", "Not recorded. Mia Chen has rejected it already."},
		{"already-decided", "something-new", "Not recorded. It was decided already."},
		{"forbidden", "", "You may not do this."},
		{"something-new", "", "Something went wrong on our side."},
	} {
		r := NewRefusal(c.code, c.reason, "", map[string]string{"by": "Mia Chen"})
		if got := r.Words().Plain(ctx); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.code, c.reason, got, c.want)
		}
	}
}

func TestLanguages(t *testing.T) {
	for header, want := range map[string]Lang{"": English, "zh-CN,zh;q=0.9,en;q=0.8": Chinese, "zh": Chinese, "de-DE,de": English, "en-GB,zh;q=0.5": English, "*;;": English} {
		if got := MatchLang(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	if l, ok := ParseLang("fr"); ok || l != English {
		t.Error("French was recognised")
	}
}

func TestWordsOfWindowsCodesKindsAndMoments(t *testing.T) {
	now := time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)
	ctx := WithLocale(t.Context(), Locale{Lang: English, Now: now})
	zh := WithLocale(t.Context(), Locale{Lang: Chinese, Now: now})
	at := time.Date(2026, 11, 29, 14, 3, 0, 0, time.UTC)
	record := NamedValue{Name: Outside("books"), Value: MoneyValue(Money{Amount: "42", Currency: "EUR"})}
	for got, want := range map[string]string{
		onDay(ctx, at) + " – " + untilOf(ctx, at, at.Add(24*time.Hour)):                       "29 Nov 14:03 – 30 Nov 14:03",
		onDay(ctx, at) + " – " + untilOf(ctx, at, at.Add(time.Hour)):                          "29 Nov 14:03 – 15:03",
		failureWords("EXECUTION_ERROR").Plain(ctx):                                            "it was sent, and what came back proves no outcome EXECUTION_ERROR",
		failureWords("R-17").Plain(ctx):                                                       "refused by the business system, which calls it R-17",
		rendered(t, Chinese, target(NewTarget("order", "10086"))):                             "订单",
		rendered(t, Chinese, target(NewTarget("shelf", "9"))):                                 "shelf",
		rendered(t, English, cell(TextValue(Outside("2026-09-24T10:02:00Z")), "")):            "24 September 2026, 10:02 UTC",
		rendered(t, English, cell(Value{kind: valueRecord, parts: []NamedValue{record}}, "")): "42.00 EUR",
		both([]Text{Outside("Mia"), Outside("Tom")}).Plain(zh):                                "Mia和Tom",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
