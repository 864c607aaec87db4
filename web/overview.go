package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OverviewPage is how things stand, at /overview: five numbers and two charts,
// each leading to the list that shows the same rows.
type OverviewPage struct {
	ReadAt    time.Time
	Waiting   WaitingTile
	Stuck     StuckTile
	Confirmed ConfirmedTile
	Unknown   UnknownTile
	Stopped   []Stopped // what is paused, and what is left alone
	Told      bool      // an executor says how its systems answer
	Pace      PaceChart
	Ages      AgeChart
}

// WaitingTile is what waits for approval.
type WaitingTile struct {
	Count    Count
	Oldest   time.Time // of what was counted; zero when nothing waits
	Expiring int
	Soon     time.Duration // what expiring means
}

// StuckTile is what nobody can approve as things are.
type StuckTile struct {
	Count  Count
	Looked int       // how many were looked at, the most urgent ones; 0: all
	First  *StuckRow // the most urgent one
}

// StuckRow is a proposal that nobody can approve.
type StuckRow struct {
	Effect Effect
	Rules  []Rule
	Can    int // who could approve, all of whom are not enough
}

// ConfirmedTile is what was approved and not taken by an executor yet.
type ConfirmedTile struct {
	Count  Count
	Oldest time.Time
	Seen   time.Time // when an executor was last heard of; zero: never
}

// UnknownTile is the unknown results that need a person.
type UnknownTile struct {
	Count Count
	Money []Money // one sum per currency, never across
	Of    int     // of how many the sums are, the most urgent ones; 0: all
}

// Stopped is something that does not go on: paused by a person, or a business
// system that an executor leaves alone.
type Stopped struct {
	Kind   string // tool, client, scope or breaker
	Name   Text
	Since  time.Time
	By     Text // who paused it, or the executor
	Reason Text // of a pause
	Reads  bool // breaker: it is not read either
}

func (s Stopped) words() Msg {
	if s.Kind == "breaker" && s.Reads {
		return msg("stopped.breaker_all", "name", bold{s.Name}, "by", s.By)
	}
	if s.Kind == "breaker" {
		return msg("stopped.breaker_writes", "name", bold{s.Name}, "by", s.By)
	}
	return msg("stopped."+s.Kind, "name", bold{s.Name}, "by", s.By)
}

func (s Stopped) short() Msg {
	if s.Kind == "breaker" {
		return msg("stopped.breaker_short", "name", cutTo{s.Name, 40})
	}
	return msg("stopped.paused_short", "name", cutTo{s.Name, 40})
}

// PaceBucket is a span of the time that people take to decide, as the address
// of the history names it.
type PaceBucket string

// PaceBuckets are all spans, quickest first; the last is of what nobody decided
// on in time.
func PaceBuckets() []PaceBucket {
	return []PaceBucket{"0-5", "5-30", "30-60", "60-120", "120-300", "300-900", "900-", PaceNobody}
}

// PaceNobody is of what nobody decided on in time.
const PaceNobody PaceBucket = "nobody"

// Span returns the bounds of the bucket; to is 0 where there is none.
func (b PaceBucket) Span() (from, to time.Duration) {
	low, high, _ := strings.Cut(string(b), "-")
	return seconds(low), seconds(high)
}

func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// holds reports whether a time falls into the bucket.
func (b PaceBucket) holds(d time.Duration) bool {
	from, to := b.Span()
	return d >= from && (to == 0 || d < to)
}

// odd reports whether the bucket is an exception: too quick to have read it, or
// nobody.
func (b PaceBucket) odd() bool { return b == PaceNobody || b == PaceBuckets()[0] }

func (b PaceBucket) words() Msg { return msg("pace.bucket." + string(b)) }

// PaceChart is how long people took to decide.
type PaceChart struct {
	From, To time.Time // days, both included, UTC
	More     bool      // only the newest were looked at
	Half     time.Duration
	Bars     []PaceBar // one per bucket; nil when nothing was decided
}

// PaceBar is one bar.
type PaceBar struct {
	Bucket PaceBucket
	N      int
}

// NewPaceChart sorts decisions into bars. took are those that people made,
// nobody is how many were missed.
func NewPaceChart(from, to time.Time, took []time.Duration, nobody int, more bool) PaceChart {
	c := PaceChart{From: from, To: to, More: more}
	if len(took)+nobody == 0 {
		return c
	}
	for _, b := range PaceBuckets() {
		bar := PaceBar{Bucket: b, N: nobody}
		if b != PaceNobody {
			bar.N = 0
			for _, d := range took {
				if b.holds(d) {
					bar.N++
				}
			}
		}
		c.Bars = append(c.Bars, bar)
	}
	if len(took) > 0 {
		sorted := slices.Sorted(slices.Values(took))
		c.Half = (sorted[(len(sorted)-1)/2] + time.Second - 1).Truncate(time.Second)
		c.Half = max(c.Half, time.Second)
	}
	return c
}

func (c PaceChart) total() int {
	n := 0
	for _, b := range c.Bars {
		n += b.N
	}
	return n
}

func (c PaceChart) url(b PaceBucket) string {
	return urlWith("/history", "from", c.From.Format(time.DateOnly), "to", c.To.Format(time.DateOnly), "zone", "UTC", "took", string(b))
}

// words says what the chart shows.
func (c PaceChart) words(ctx context.Context) string {
	from, to := ShortDay(ctx, c.From), ShortDay(ctx, c.To)
	if len(c.Bars) == 0 {
		return T(ctx, "pace.none", "from", from, "to", to)
	}
	key := "pace.about"
	if c.More {
		key = "pace.about_newest"
	}
	text := T(ctx, key, "n", c.total(), "count", Number(ctx, c.total()), "from", from, "to", to)
	if c.Half > 0 {
		text = T(ctx, "list.sentences", "a", text, "b", T(ctx, "pace.half", "span", c.Half))
	}
	return text
}

// AgeBucket is a span of a case's age, as the address of the unknown results
// names it, in minutes.
type AgeBucket string

// AgeBuckets are all spans, youngest first.
func AgeBuckets() []AgeBucket { return []AgeBucket{"0-15", "15-60", "60-240", "240-1440", "1440-"} }

// Span returns the bounds of the bucket; to is 0 where there is none.
func (b AgeBucket) Span() (from, to time.Duration) {
	from, to = PaceBucket(b).Span()
	return 60 * from, 60 * to
}

func (b AgeBucket) words() Msg { return msg("ages.bucket." + string(b)) }

// AgeChart is how old open cases are.
type AgeChart struct {
	More   bool      // only the oldest were looked at
	Oldest time.Time // zero when there is none
	CaseID string    // of the oldest
	Bars   []AgeBar  // one per bucket; nil when there is none
}

// AgeBar is one bar: what needs a person, what is still asked by itself, and
// what waits for a second person.
type AgeBar struct {
	Bucket AgeBucket
	Person int
	Asking int
	Second int
}

// Add puts one case into its bar.
func (c *AgeChart) Add(age time.Duration, needsPerson, second bool) {
	if c.Bars == nil {
		for _, b := range AgeBuckets() {
			c.Bars = append(c.Bars, AgeBar{Bucket: b})
		}
	}
	for i := range c.Bars {
		from, to := c.Bars[i].Bucket.Span()
		if age < from || to > 0 && age >= to {
			continue
		}
		switch {
		case needsPerson:
			c.Bars[i].Person++
		case second:
			c.Bars[i].Second++
		default:
			c.Bars[i].Asking++
		}
	}
}

func (b AgeBar) total() int { return b.Person + b.Asking + b.Second }

// ageSegment is a part of a bar.
type ageSegment struct {
	tab   TriageTab
	n     int
	x     int // where it begins, in thousandths of the space for bars
	width int
}

func (c AgeChart) total() int {
	n := 0
	for _, b := range c.Bars {
		n += b.total()
	}
	return n
}

// most is how much the longest bar stands for.
func (c AgeChart) most() int {
	most := 1
	for _, b := range c.Bars {
		most = max(most, b.total())
	}
	return most
}

// segments are the parts of a bar that there are, beside each other.
func (c AgeChart) segments(b AgeBar) []ageSegment {
	most := c.most()
	var out []ageSegment
	before := 0
	for _, s := range []ageSegment{{tab: TriagePerson, n: b.Person}, {tab: TriageAsking, n: b.Asking}, {tab: TriageSecond, n: b.Second}} {
		if s.n > 0 {
			s.x, s.width = before*1000/most, (before+s.n)*1000/most-before*1000/most
			before += s.n
			out = append(out, s)
		}
	}
	return out
}

func (b AgeBar) url(t TriageTab) string {
	tab := string(t)
	if t == TriagePerson {
		tab = ""
	}
	return urlWith("/triage", "tab", tab, "age", string(b.Bucket))
}

func (b AgeBar) of(t TriageTab) int {
	switch t {
	case TriagePerson:
		return b.Person
	case TriageSecond:
		return b.Second
	}
	return b.Asking
}

func (c AgeChart) words(ctx context.Context) string {
	if len(c.Bars) == 0 {
		return T(ctx, "ages.none")
	}
	key := "ages.about"
	if c.More {
		key = "ages.about_more"
	}
	return T(ctx, key, "n", c.total(), "count", Number(ctx, c.total()))
}

// Geometry of the charts, in pixels where it is not a share of the width.
const (
	paceTop    = 28  // above the highest bar
	paceTall   = 212 // of the highest bar
	paceBottom = 44  // below the axis
	ageRow     = 54
	ageBarHigh = 32
	ageLeft    = 24 // percent, for the names
	ageWide    = 60 // percent, for bars
)

// percent writes a share of the width for an attribute.
func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

func px(n int) string { return strconv.Itoa(n) }

// bar is where the i-th bar of the pace stands.
func (c PaceChart) bar(i int) (x, width, y, height string) {
	most := 1
	for _, b := range c.Bars {
		most = max(most, b.N)
	}
	high := c.Bars[i].N * paceTall / most
	if c.Bars[i].N > 0 {
		high = max(high, 3)
	}
	each := 100 / float64(len(c.Bars))
	return percent(each*float64(i) + each*0.14), percent(each * 0.72), px(paceTop + paceTall - high), px(high)
}

func (c PaceChart) middle(i int) string {
	return percent(100 / float64(len(c.Bars)) * (float64(i) + 0.5))
}

func (c PaceChart) above(i int) string {
	_, _, y, _ := c.bar(i)
	n, err := strconv.Atoi(y)
	if err != nil {
		return y
	}
	return px(n - 7)
}

// lines are the two lines of a bar's name.
func (b PaceBucket) lines(ctx context.Context) (first, second string) {
	first, second, _ = strings.Cut(T(ctx, "pace.short."+string(b)), "|")
	return first, second
}

func ageX(thousandths int) string { return percent(ageLeft + float64(thousandths)*ageWide/1000) }

func ageWidth(thousandths int) string { return percent(float64(thousandths) * ageWide / 1000) }

func (s ageSegment) words(b AgeBar) Msg {
	return msg("ages.segment."+string(s.tab), "n", s.n, "count", s.n, "age", b.Bucket.words())
}

func (b PaceBar) words() Msg {
	return msg("pace.bar", "n", b.N, "count", b.N, "took", b.Bucket.words())
}

func sinceWords(ctx context.Context, at time.Time) string {
	return Span(ctx, max(0, LocaleOf(ctx).Now.Sub(at)))
}

func (t WaitingTile) oldestKey() string {
	if t.Count.More {
		return "overview.oldest_at_least"
	}
	return "overview.oldest"
}

func (s StuckRow) words() Msg {
	return msg("overview.stuck_needs", "who", needsWords(s.Rules), "n", s.Can, "count", s.Can)
}
