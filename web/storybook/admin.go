package storybook

import (
	"fmt"
	"time"

	"countersign/web"

	"github.com/a-h/templ"
)

func adminStories() []Story {
	t := web.Outside
	return []Story{
		{"people", func(l web.Lang) templ.Component {
			return web.PeopleView(adminFrame(l, web.People), web.PeoplePage{People: people()})
		}},
		{"people-one", func(l web.Lang) templ.Component {
			return web.PeopleView(frame(l, web.People), web.PeoplePage{People: people()[:1]})
		}},
		{"people-none", func(l web.Lang) templ.Component { return web.PeopleView(adminFrame(l, web.People), web.PeoplePage{}) }},
		{"people-many", func(l web.Lang) templ.Component {
			var many []web.PersonRow
			for i := range 60 {
				p := people()[i%4]
				p.ID, p.Username = fmt.Sprintf("per_%d", i), t(fmt.Sprintf("person%d", i))
				many = append(many, p)
			}
			return web.PeopleView(adminFrame(l, web.People), web.PeoplePage{People: many, NextURL: "/people?cursor=x"})
		}},
		{"person-new", func(l web.Lang) templ.Component {
			return web.PersonNewView(adminFrame(l, web.People), web.PersonForm{Op: "op_1"})
		}},
		{"person-new-refused", func(l web.Lang) templ.Component {
			return web.PersonNewView(adminFrame(l, web.People), web.PersonForm{Op: "op_1", Name: "Ana \"the\" <Ruiz>", Username: "ana", Roles: []string{"support"},
				Refused: web.NewRefusal("invalid-argument", "username-taken", "", nil).At("/username", "is taken already")})
		}},
		{"person", func(l web.Lang) templ.Component {
			return web.PersonView(adminFrame(l, web.People), personPage())
		}},
		{"person-secret", func(l web.Lang) templ.Component {
			p := personPage()
			p.Secret = &web.Secret{Value: "https://console.example/login/Zk3xV9tQ2mB7nR4sW8yL1pD6hJ0cF5gA-uE_iO2bT4k", Expires: Now().Add(24 * time.Hour)}
			return web.PersonView(adminFrame(l, web.People), p)
		}},
		{"clients", func(l web.Lang) templ.Component {
			return web.ClientsView(adminFrame(l, web.Clients), web.ClientsPage{Clients: clients()})
		}},
		{"clients-none", func(l web.Lang) templ.Component {
			return web.ClientsView(adminFrame(l, web.Clients), web.ClientsPage{})
		}},
		{"client-new", func(l web.Lang) templ.Component {
			return web.ClientNewView(adminFrame(l, web.Clients), web.ClientForm{Op: "op_2", Owner: "per_1", Roles: []string{"proposer"}, Owners: []web.Option{{Value: "per_1", Label: t("Ana Ruiz")}, {Value: "per_2", Label: t("Mia Chen")}}})
		}},
		{"client-new-refused", func(l web.Lang) templ.Component {
			return web.ClientNewView(adminFrame(l, web.Clients), web.ClientForm{Op: "op_2", Name: "Shop chat", Tools: "catalog.set_price\norders.refund", Days: "soon", Owners: []web.Option{{Value: "per_1", Label: t("Ana Ruiz")}},
				Refused: web.NewRefusal("invalid-argument", "", "", nil).At("/expires_in_days", "must be a number of days").At("/roles", "needs at least one")})
		}},
		{"client", func(l web.Lang) templ.Component {
			return web.ClientView(adminFrame(l, web.Clients), clientPage(clients()[0]))
		}},
		{"client-key", func(l web.Lang) templ.Component {
			p := clientPage(clients()[1])
			p.NewKey = &web.Secret{Value: "csk_Z9yX7wV5uT3sR1qP0oN8mL6kJ4iH2gF0eD8cB6aA4", Expires: at(0, 0, 0).AddDate(1, 0, 0)}
			return web.ClientView(adminFrame(l, web.Clients), p)
		}},
		{"account", func(l web.Lang) templ.Component {
			return web.AccountView(frame(l, web.Account), accountPage(l))
		}},
		{"account-refused", func(l web.Lang) templ.Component {
			p := accountPage(l)
			p.Refused = web.NewRefusal("invalid-argument", "mismatch", "", nil).At("/again", "differs")
			return web.AccountView(frame(l, web.Account), p)
		}},
	}
}

func people() []web.PersonRow {
	t := web.Outside
	return []web.PersonRow{
		{ID: "per_1", Name: t("Ana Ruiz"), Username: t("ana"), Roles: []string{"support"}, LastSeen: Now().Add(-2 * time.Minute)},
		{ID: "per_2", Name: t("Mia Chen"), Username: t("mia"), Roles: []string{"support", "ops"}, LastSeen: Now().Add(-26 * time.Hour)},
		{ID: "per_3", Name: t("Ines Vogel"), Username: t("ines"), Roles: []string{"admin", "auditor"}, LastSeen: Now().Add(-10 * time.Second)},
		{ID: "per_4", Name: t("Left\u200b Longago"), Username: t("left"), Disabled: true},
	}
}

func personPage() web.PersonPage {
	t := web.Outside
	return web.PersonPage{Person: people()[1], Created: at(9, 0, 0).AddDate(0, -3, 0), Op: "op_3", Clients: clients()[:1],
		Events: []web.Admin{{At: at(9, 0, 0).AddDate(0, -3, 0), Kind: "created", By: t("Ines Vogel")}, {At: at(10, 20, 0), Kind: "roles_changed", By: t("Ines Vogel"), What: t("support, ops")}}}
}

func clients() []web.ClientRow {
	t := web.Outside
	return []web.ClientRow{
		{ID: "cli_1", Name: t("Shop chat"), Roles: []string{"proposer"}, Owner: t("Mia Chen"), Tools: []web.Text{t("catalog.set_price"), t("orders.refund")}, Entries: []web.Text{t("chat")}, LastSeen: Now().Add(-8 * time.Second),
			Keys: []web.Key{{ID: "key_1", Prefix: "csk_4fP2", Created: at(9, 0, 0).AddDate(0, -3, 0), LastSeen: Now().Add(-8 * time.Second)}, {ID: "key_2", Prefix: "csk_9aQ7", Created: at(9, 0, 0), Expires: at(9, 0, 0).AddDate(1, 0, 0)}, {ID: "key_0", Prefix: "csk_0000", Created: at(9, 0, 0).AddDate(-1, 0, 0), Revoked: true}}},
		{ID: "cli_2", Name: t("shop-1"), Roles: []string{"executor"}, Owner: t("Ines Vogel"), Keys: []web.Key{{ID: "key_3", Prefix: "csk_Z9yX", Created: at(9, 0, 0)}}, LastSeen: Now().Add(-2 * time.Second)},
		{ID: "cli_3", Name: t("Old importer"), Roles: []string{"proposer", "reader"}, Owner: t("Ana Ruiz"), Revoked: true, LastSeen: Now().AddDate(0, 0, -40)},
	}
}

func clientPage(c web.ClientRow) web.ClientPage {
	t := web.Outside
	return web.ClientPage{Client: c, Op: "op_4", Open: web.Count{N: 3}, Manage: true, Created: at(9, 0, 0),
		Around: []web.Admin{{At: at(9, 30, 0), Kind: "refused_chat", What: t("catalog.get_operation")}, {At: at(10, 2, 0), Kind: "refused_limits", What: t("bank.transfer_funds")}},
		Events: []web.Admin{{At: at(9, 0, 0), Kind: "created", By: t("Ines Vogel")}, {At: at(9, 0, 0), Kind: "key_created", By: t("Ines Vogel"), What: t("csk_4fP2…")}}}
}

func accountPage(l web.Lang) web.AccountPage {
	t := web.Outside
	zone := Locale(l).Zone.String()
	return web.AccountPage{Name: t("Ana Ruiz"), Username: t("ana"), Roles: []string{"support"}, Lang: l, Zone: zone, Zones: []string{"UTC", "Europe/Berlin", "Asia/Shanghai"}, Op: "op_5",
		Sessions: []web.Session{
			{ID: "1", Current: true, Method: "password", Agent: t("Firefox on Linux"), Address: t("192.0.2.14"), Started: at(8, 2, 0), LastSeen: Now()},
			{ID: "2", Method: "link", Agent: t("Safari on iPhone"), Address: t("2001:db8::7"), Started: at(19, 40, 0).AddDate(0, 0, -2), LastSeen: Now().Add(-26 * time.Hour)},
		}}
}
