package storybook

import (
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func overviewStories() []Story {
	page := func(p func(l web.Lang) web.OverviewPage) func(l web.Lang) templ.Component {
		return func(l web.Lang) templ.Component {
			f := opsFrame(l)
			f.Section = web.Overview
			return web.OverviewView(f, p(l))
		}
	}
	return []Story{
		{"overview", page(overview)},
		{"overview-none", page(func(web.Lang) web.OverviewPage {
			from, to := week()
			return web.OverviewPage{ReadAt: Now(), Waiting: web.WaitingTile{Soon: 5 * time.Minute}, Pace: web.NewPaceChart(from, to, nil, 0, false)}
		})},
		{"overview-one", page(func(l web.Lang) web.OverviewPage {
			p := overview(l)
			from, to := week()
			p.Pace = web.NewPaceChart(from, to, []time.Duration{72 * time.Second}, 0, false)
			p.Ages = web.AgeChart{Oldest: in(-4, 0), CaseID: "cas_01KB9Z3M7Q6W8R2TAV5N000001"}
			p.Ages.Add(4*time.Minute, false, false)
			p.Stopped, p.Stuck = nil, web.StuckTile{}
			return p
		})},
		{"overview-many", page(func(l web.Lang) web.OverviewPage {
			p := overview(l)
			p.Waiting.Count, p.Stuck.Looked, p.Unknown.Of = web.Count{N: 1000, More: true}, 1000, 200
			p.Unknown.Count = web.Count{N: 1000, More: true}
			from, to := week()
			var took []time.Duration
			for i := range 990 {
				took = append(took, time.Duration(i)*time.Second)
			}
			p.Pace = web.NewPaceChart(from, to, took, 10, true)
			for i := range 990 {
				p.Ages.Add(time.Duration(i*3)*time.Minute, i%3 == 0, i%7 == 0)
			}
			p.Ages.More = true
			return p
		})},
	}
}

func week() (from, to time.Time) {
	to = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	return to.AddDate(0, 0, -6), to
}

func overview(l web.Lang) web.OverviewPage {
	t := web.Outside
	from, to := week()
	var took []time.Duration
	for i, n := range []int{3, 41, 78, 112, 98, 57, 6} {
		at, _ := web.PaceBuckets()[i].Span()
		for range n {
			took = append(took, at+time.Second)
		}
	}
	p := web.OverviewPage{
		ReadAt:  Now(),
		Waiting: web.WaitingTile{Count: web.Count{N: 13}, Oldest: in(-13, 0), Expiring: 2, Soon: 5 * time.Minute},
		Stuck: web.StuckTile{Count: web.Count{N: 1}, First: &web.StuckRow{Effect: sentence(pick(l, "Credit limit, Brandt GmbH", "Brandt GmbH 的信用额度")), Can: 1,
			Rules: []web.Rule{{Role: "finance", Count: 2}}}},
		Confirmed: web.ConfirmedTile{Count: web.Count{N: 2}, Oldest: in(0, -48), Seen: in(0, -4)},
		Unknown: web.UnknownTile{Count: web.Count{N: 9}, Money: []web.Money{{Amount: "312.40", Currency: "EUR", MinorUnits: 2}, {Amount: "1860", Currency: "CNY", MinorUnits: 2},
			{Amount: "95", Currency: "USD", MinorUnits: 2}, {Amount: "290"}}},
		Stopped: []web.Stopped{
			{Kind: "breaker", Name: t("https://payhub.example/v2"), By: t("executor-1"), Since: at(10, 9, 12), Reads: true},
			{Kind: "tool", Name: t("transfers.send"), By: t(pick(l, "Ines Vogel", "王敏")), Since: at(9, 1, 0), Reason: t(pick(l, "The bank has announced maintenance", "银行公告维护"))},
		},
		Told: true,
		Pace: web.NewPaceChart(from, to, took, 23, false),
		Ages: web.AgeChart{Oldest: Now().Add(-31 * time.Hour), CaseID: "cas_01KB9Z3M7Q6W8R2TAV5N000001"},
	}
	for _, c := range []struct {
		age            time.Duration
		person, asking int
		second         int
	}{{2 * time.Minute, 0, 2, 0}, {20 * time.Minute, 1, 2, 0}, {2 * time.Hour, 7, 0, 1}, {31 * time.Hour, 1, 0, 0}} {
		for range c.person {
			p.Ages.Add(c.age, true, false)
		}
		for range c.asking {
			p.Ages.Add(c.age, false, false)
		}
		for range c.second {
			p.Ages.Add(c.age, false, true)
		}
	}
	return p
}
