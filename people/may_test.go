package people

import (
	"errors"
	"slices"
	"testing"
	"time"

	"countersign/action"
)

func reason(err error) string {
	var r *action.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

// TestReport11_NobodyApprovesTheirOwn: neither as the actor under any spelling
// of their id, nor through a program that they answer for, nor through another role.
func TestReport11_NobodyApprovesTheirOwn(t *testing.T) {
	long := time.Unix(0, 0)
	s := Subject{Tool: "refunds.refund", Scope: "shop-1", ActorID: "u-7", ClientID: "cli_1", ClientOwner: "per_owner"}
	tests := []struct {
		name   string
		person Person
		on     Subject
		roles  []string
		reason string
	}{
		{"support", Person{ID: "per_1", Roles: []string{"support"}}, s, []string{"support"}, ""},
		{"a contract's role", Person{ID: "per_1", Roles: []string{"finance", "support"}}, s, []string{"finance", "support"}, ""},
		{"admin beside a role", Person{ID: "per_1", Roles: []string{"admin", "ops"}}, s, []string{"ops"}, ""},
		{"admin alone", Person{ID: "per_1", Roles: []string{"admin"}}, s, nil, "role"},
		{"auditor", Person{ID: "per_1", Roles: []string{"auditor"}}, s, nil, "role"},
		{"auditor with a role", Person{ID: "per_1", Roles: []string{"auditor", "support"}}, s, nil, "role"},
		{"no role", Person{ID: "per_1"}, s, nil, "role"},
		{"disabled", Person{ID: "per_1", Roles: []string{"support"}, Disabled: &long}, s, nil, "disabled"},
		{"the actor", Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"u-1", "u-7"}}, s, nil, "self-approval-actor"},
		{"the actor in capitals", Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"U-7"}}, s, nil, "self-approval-actor"},
		{"the actor with what nobody sees", Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"u\u2010\u200b7\ufe0f\u00ad"}}, s, nil, "self-approval-actor"},
		{"the actor in full width", Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"ｕ-7 "}}, s, nil, "self-approval-actor"},
		{"another actor", Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"u-77"}}, s, []string{"support"}, ""},
		{"the client's owner", Person{ID: "per_owner", Roles: []string{"support"}}, s, nil, "self-approval-client"},
		{"the client's owner as admin", Person{ID: "per_owner", Roles: []string{"admin", "support"}}, s, nil, "self-approval-client"},
		{"other tools", Person{ID: "per_1", Roles: []string{"support"}, Tools: []string{"catalog.set_price"}}, s, nil, "tool"},
		{"this tool", Person{ID: "per_1", Roles: []string{"support"}, Tools: []string{"refunds.refund"}}, s, []string{"support"}, ""},
		{"other scopes", Person{ID: "per_1", Roles: []string{"support"}, Scopes: []string{"shop-2"}}, s, nil, "scope"},
		{"a limit to scopes, no scope", Person{ID: "per_1", Roles: []string{"support"}, Scopes: []string{"shop-1"}},
			Subject{Tool: "refunds.refund"}, nil, "scope"},
		{"nobody owns it", Person{Roles: []string{"support"}}, Subject{}, []string{"support"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			roles, refusal := RolesOn(tt.person, tt.on)
			if got := ""; refusal != nil {
				got = refusal.Reason
				if got != tt.reason || refusal.Code != action.Forbidden {
					t.Errorf("refused as %s %q, want %q", refusal.Code, got, tt.reason)
				}
			} else if tt.reason != "" {
				t.Errorf("not refused, want %q", tt.reason)
			}
			if !slices.Equal(roles, tt.roles) {
				t.Errorf("roles %q, want %q", roles, tt.roles)
			}
			if err := May(tt.person, ToDecide, tt.on); reason(err) != tt.reason || (err == nil) != (tt.reason == "") {
				t.Errorf("May decide: %v, want %q", err, tt.reason)
			}
		})
	}
}

// TestReport13_AuthorityIsOfNow: what counts is who somebody is when the
// decision is counted.
func TestReport13_AuthorityIsOfNow(t *testing.T) {
	now := time.Now()
	persons := []Person{
		{ID: "per_1", Roles: []string{"support"}},
		{ID: "per_2", Roles: []string{"support"}, Disabled: &now},
		{ID: "per_3", Roles: []string{}},
	}
	got := Authority(persons, Subject{Tool: "x"})
	if len(got) != 1 || !slices.Equal(got["per_1"], []string{"support"}) {
		t.Errorf("authority %v, want that of per_1 alone", got)
	}
}

// TestReport12_OnePersonCountsOnce: several roles of one person fill one seat.
func TestReport12_OnePersonCountsOnce(t *testing.T) {
	one := Person{ID: "per_1", Roles: []string{"finance", "ops", "support"}}
	authority := Authority([]Person{one, one}, Subject{})
	needs := []action.Need{{Role: "support", Approvals: 1}, {Role: "finance", Approvals: 1}}
	if n := action.Missing(needs, authority); n != 1 {
		t.Errorf("%d approvals are missing, want 1", n)
	}
}

func TestMayOtherVerbs(t *testing.T) {
	s := Subject{Tool: "t", Scope: "a", ActorID: "u", ClientOwner: "per_1"}
	support := Person{ID: "per_1", Roles: []string{"support"}, Actors: []string{"u"}}
	ops := Person{ID: "per_1", Roles: []string{"ops"}, Tools: []string{"t"}}
	tests := []struct {
		name   string
		err    error
		reason string
	}{
		{"support reads", May(support, ToRead, s), ""},
		{"support does not settle", May(support, ToSettle, s), "role"},
		{"support does not administer", May(support, ToAdminister, s), "role"},
		{"ops settles", May(ops, ToSettle, s), ""},
		{"ops settles its tools only", May(ops, ToSettle, Subject{Tool: "x"}), "tool"},
		{"ops reads its tools only", May(ops, ToRead, Subject{Tool: "x"}), "tool"},
		{"no role reads nothing", May(Person{}, ToRead, s), "role"},
		{"auditor reads past limits", May(Person{Roles: []string{"auditor"}, Tools: []string{"x"}}, ToRead, s), ""},
		{"auditor does not administer", May(Person{Roles: []string{"auditor"}}, ToAdminister, s), "role"},
		{"admin administers", May(Person{Roles: []string{"admin"}}, ToAdminister, Subject{}), ""},
		{"people do not execute", May(Person{Roles: []string{"admin", "ops", "support"}}, ToExecute, s), "role"},
		{"people do not propose", May(Person{Roles: []string{"admin", "ops", "support"}}, ToPropose, s), "role"},
	}
	for _, tt := range tests {
		if (tt.err == nil) != (tt.reason == "") || reason(tt.err) != tt.reason {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.reason)
		}
	}
}

func TestClientMay(t *testing.T) {
	now := time.Now()
	s := Subject{Tool: "t", Scope: "a", Entry: "chat", ClientID: "cli_1"}
	client := func(roles ...string) Client { return Client{ID: "cli_1", Roles: roles} }
	tests := []struct {
		name   string
		err    error
		reason string
	}{
		{"proposer proposes", ClientMay(client("proposer"), ToPropose, s), ""},
		{"proposer reads its own", ClientMay(client("proposer"), ToRead, s), ""},
		{"proposer reads no other's", ClientMay(client("proposer"), ToRead, Subject{Tool: "t", ClientID: "cli_2"}), "role"},
		{"proposer does not execute", ClientMay(client("proposer"), ToExecute, s), "role"},
		{"executor executes", ClientMay(client("executor"), ToExecute, s), ""},
		{"executor does not propose", ClientMay(client("executor"), ToPropose, s), "role"},
		{"reader reads", ClientMay(client("reader"), ToRead, Subject{ClientID: "cli_2"}), ""},
		{"admin reads", ClientMay(client("admin"), ToRead, Subject{ClientID: "cli_2"}), ""},
		{"admin does not propose", ClientMay(client("admin"), ToPropose, s), "role"},
		{"no program decides", ClientMay(client("admin", "proposer", "executor", "reader"), ToDecide, s), "role"},
		{"no program settles", ClientMay(client("admin", "proposer", "executor", "reader"), ToSettle, s), "role"},
		{"another tool", ClientMay(Client{Roles: []string{"executor"}, Tools: []string{"x"}}, ToExecute, s), "tool"},
		{"another scope", ClientMay(Client{Roles: []string{"proposer"}, Scopes: []string{"b"}}, ToPropose, s), "scope"},
		{"another entry", ClientMay(Client{Roles: []string{"proposer"}, Entries: []string{"workflow"}}, ToPropose, s), "entry"},
		{"disabled", ClientMay(Client{Roles: []string{"admin"}, Disabled: &now}, ToRead, s), "disabled"},
	}
	for _, tt := range tests {
		if (tt.err == nil) != (tt.reason == "") || reason(tt.err) != tt.reason {
			t.Errorf("%s: %v, want %q", tt.name, tt.err, tt.reason)
		}
	}
}

func TestZeroViewerSeesNothing(t *testing.T) {
	if (Viewer{}).Sees(Subject{}) {
		t.Error("the zero Viewer sees an action")
	}
}

func TestNetwork(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.9:4711":          "203.0.113.9",
		"203.0.113.9":               "203.0.113.9",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":      "2001:db8:1:2::/64",
		"[::ffff:203.0.113.9]:80":   "203.0.113.9",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"@":                         "@",
	} {
		if got := network(in); got != want {
			t.Errorf("network(%q) = %q, want %q", in, got, want)
		}
	}
}
