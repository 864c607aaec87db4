package handlers

import (
	"slices"

	"countersign/people"
)

// pageRoutes are for people. Forms are posted, take effect once, and end in a
// redirect; nothing that is got changes anything.
func pageRoutes() []route {
	return slices.Concat([]route{
		{get, "/static/*", "static", anyone(), (*server).staticFile, 0, nil},
		{get, "/", "home", visitor(), (*server).home, 0, nil},
		{get, "/login", "signInForm", visitor(), (*server).showSignIn, 0, nil},
		{post, "/login", "signIn", visitor(), (*server).signIn, 0, nil},
		{get, "/login/{secret}", "linkForm", visitor(), (*server).showLink, 0, nil},
		{post, "/login/{secret}", "link", visitor(), (*server).useLink, 0, nil},
		{post, "/logout", "signOut", visitor(), (*server).signOut, 0, nil},
		{post, "/language", "language", visitor(), (*server).setLanguage, 0, nil},

		{get, "/approvals", "approvals", signedIn(), (*server).showApprovals, 0, nil},
		{get, "/approvals/stream", "approvalsStream", signedIn(), (*server).streamApprovals, forever, nil},
		{get, "/actions/{id}", "action", signedIn(), (*server).showAction, 0, nil},
		{get, "/actions/{id}/stream", "actionStream", signedIn(), (*server).streamAction, forever, nil},
		{get, "/actions/{id}/payload", "payload", signedIn(), (*server).payloadFile, 0, nil},
		{post, "/actions/{id}/decisions", "decide", signedIn(), (*server).decide, 0, nil},
		{post, "/actions/{id}/review", "review", signedIn(), (*server).reviewAction, 0, nil},
		{get, "/history", "history", signedIn(), (*server).showHistory, 0, nil},
		{get, "/history.jsonl", "callsFile", signedIn(), (*server).callsFile, maxWait, nil},
		{get, "/history.csv", "historyFile", signedIn(), (*server).historyFile, maxWait, nil},
		{get, "/overview", "overview", signedIn(), (*server).showOverview, 0, nil},
		{get, "/tools", "tools", signedIn(), (*server).showTools, 0, nil},
		{get, "/tools/{name}", "tool", signedIn(), (*server).showTool, 0, nil},
	}, triageRoutes(), reconcileRoutes(), pauseRoutes(), taskPageRoutes(), accountRoutes(), adminRoutes())
}

// accountRoutes are everybody's own.
func accountRoutes() []route {
	return []route{
		{get, "/account", "account", signedIn(), (*server).showAccount, 0, nil},
		{post, "/account/password", "accountPassword", signedIn(), (*server).changePassword, 0, nil},
		{post, "/account/preferences", "accountPreferences", signedIn(), (*server).savePreferences, 0, nil},
		{post, "/account/sessions/{session}/end", "accountSession", signedIn(), (*server).endSession, 0, nil},
		{post, "/account/sessions/end-others", "accountSessions", signedIn(), (*server).endOtherSessions, 0, nil},
		{get, "/account/prove", "proveForm", signedIn(), (*server).showProve, 0, nil},
		{post, "/account/prove", "prove", signedIn(), (*server).prove, 0, nil},
	}
}

// adminRoutes are for those who administer people and programs; auditors look.
func adminRoutes() []route {
	look, admin := signedIn(people.RoleAdmin, people.RoleAuditor), signedIn(people.RoleAdmin)
	return []route{
		{get, "/people", "people", look, (*server).showPeople, 0, nil},
		{get, "/people/new", "personForm", admin, (*server).showPersonForm, 0, nil},
		{post, "/people", "createPerson", admin, (*server).createPerson, 0, nil},
		{get, "/people/{person}", "person", look, (*server).showPerson, 0, nil},
		{post, "/people/{person}/roles", "personRoles", admin, (*server).setRoles, 0, nil},
		{post, "/people/{person}/password", "personPassword", admin, (*server).resetPassword, 0, nil},
		{post, "/people/{person}/disable", "disablePerson", admin, (*server).disablePerson, 0, nil},
		{post, "/people/{person}/enable", "enablePerson", admin, (*server).enablePerson, 0, nil},
		{get, "/clients", "clients", look, (*server).showClients, 0, nil},
		{get, "/clients/new", "clientForm", admin, (*server).showClientForm, 0, nil},
		{post, "/clients", "createClient", admin, (*server).createClient, 0, nil},
		{get, "/clients/{client}", "client", look, (*server).showClient, 0, nil},
		{post, "/clients/{client}/keys", "createKey", admin, (*server).createKey, 0, nil},
		{post, "/clients/{client}/keys/{key}/revoke", "revokeKey", admin, (*server).revokeKey, 0, nil},
		{post, "/clients/{client}/revoke", "revokeClient", admin, (*server).revokeClient, 0, nil},
	}
}
