package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/action"
)

// check finds what the shape alone cannot tell. It reports places in the
// completed document.
func (c *Contract) check(full *node) []action.FieldError {
	var problems []action.FieldError
	add := func(pointer, format string, args ...any) {
		problems = append(problems, action.FieldError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	c.checkPayloadPlaces(add)
	c.checkRules(add)
	c.checkExecution(add)
	c.checkReconcile(add)
	if c.HTTP != nil {
		c.checkHTTP("/http", c.HTTP, add)
	}
	c.checkSteps(add)
	c.checkDisplay(add)
	return problems
}

type adder func(pointer, format string, args ...any)

// mayHold reports whether a payload may have a value at a place. Only a
// schema that lists its top-level fields can tell.
func (c *Contract) mayHold(pointer string) bool {
	if len(c.fields) == 0 || c.composed {
		return true
	}
	first := splitPointer(pointer)[0]
	return slices.ContainsFunc(c.fields, func(f field) bool { return f.name == first })
}

func (c *Contract) needPlace(at, pointer string, add adder) {
	if !c.mayHold(pointer) {
		add(at, "the input has no field %q", splitPointer(pointer)[0])
	}
}

// needShown is needPlace for what may also be in an answer that is shown.
func (c *Contract) needShown(at, pointer string, add adder) {
	if !covered(c.Display.AllowOutput, splitPointer(pointer)) {
		c.needPlace(at, pointer, add)
	}
}

func (c *Contract) checkPayloadPlaces(add adder) {
	if c.Target == nil {
		return
	}
	for _, id := range c.Target.ID {
		c.needPlace("/target/id", id, add)
	}
	switch n := len(c.Target.Answer); {
	case n > 0 && c.Mode != Read:
		add("/target/answer", "is for tools that read: take it out")
	case n > 0 && n != len(c.Target.ID):
		add("/target/answer", "names %d places, and the id has %d: say of each where the answer names it", n, len(c.Target.ID))
	}
	if isPointer(c.Target.Scope) {
		c.needPlace("/target/scope", c.Target.Scope, add)
	}
}

func (c *Contract) checkRules(add adder) {
	if c.Mode == Read && len(c.Approval.Rules) > 0 {
		add("/approval/rules", "a tool that only reads needs no approval: take the rules out, or make the mode write")
	}
	for i, r := range c.Approval.Rules {
		if problem := badRole(r.Role); problem != "" {
			add("/approval/rules/"+strconv.Itoa(i)+"/role", "%s", problem)
		}
		if r.StepUp && r.Approvals == 0 {
			add("/approval/rules/"+strconv.Itoa(i)+"/step_up", "needs at least one approval")
		}
	}
}

// badRole says why nobody could decide in a role, "" when somebody could.
func badRole(role string) string {
	switch {
	case role == "" || len(role) > 32 || role[0] < 'a' || role[0] > 'z' || strings.Trim(role, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return "a role is 1 to 32 of the characters a-z, 0-9, _ and -, a letter first"
	case role == "admin" || role == "auditor":
		return "nobody decides as " + role + ": name a role that approves, such as support"
	}
	return ""
}

func (c *Contract) checkExecution(add adder) {
	e := c.Execution
	if e.Retry == RetrySameKey && e.KeyLifetime.Duration == 0 {
		add("/execution/key_lifetime", "is required with retry: same_key, because a key is safe only while it is remembered")
	}
	if e.Lease.Duration <= e.Timeout.Duration {
		add("/execution/lease", "must be longer than the timeout of one request")
	}
	checkStatuses("/execution", e.DefiniteFailures, e.Conflicts, add)
}

func checkStatuses(base string, failures, conflicts []int, add adder) {
	for _, list := range []struct {
		name     string
		statuses []int
	}{{"definite_failures", failures}, {"conflicts", conflicts}} {
		for i, status := range list.statuses {
			if status == 408 || status == 425 || status == 429 {
				add(fmt.Sprintf("%s/%s/%d", base, list.name, i), "status %d never proves that nothing happened", status)
			}
		}
	}
	for i, status := range conflicts {
		if slices.Contains(failures, status) {
			add(fmt.Sprintf("%s/conflicts/%d", base, i), "status %d is also a definite failure: it can mean only one of the two", status)
		}
	}
}

func (c *Contract) checkDisplay(add adder) {
	for lang, template := range c.Display.Summary {
		at := "/display/summary"
		if lang != "" {
			at = join(at, lang)
		}
		c.checkTemplate(at, template, add)
	}
	for i, link := range c.Display.Links {
		c.checkTemplate("/display/links/"+strconv.Itoa(i), link, add)
	}
	for pointer, money := range c.Display.Money {
		c.needShown(join("/display/money", pointer), pointer, add)
		if isPointer(money.Currency) {
			c.needShown(join("/display/money", pointer)+"/currency", money.Currency, add)
		}
	}
	for pointer := range c.Display.Labels {
		c.needShown(join("/display/labels", pointer), pointer, add)
	}
	for i, pointer := range c.Display.Mask {
		if splitPointer(pointer)[0] != "*" {
			c.needPlace("/display/mask/"+strconv.Itoa(i), pointer, add)
		}
		c.checkMask("/display/mask/"+strconv.Itoa(i), pointer, add)
	}
}

// checkMask refuses to hide what the contract itself gives away.
func (c *Contract) checkMask(at, mask string, add adder) {
	hidden := func(pointer string) bool { return isPointer(pointer) && covered([]string{mask}, splitPointer(pointer)) }
	if c.Target != nil {
		if slices.ContainsFunc(c.Target.ID, hidden) {
			add(at, "hides the target's id, which is shown and looked up everywhere")
		}
		if hidden(c.Target.Scope) {
			add(at, "hides the scope, which limits who may see the action")
		}
	}
	name := splitPointer(mask)[0]
	for _, m := range c.Display.Measures {
		if strings.Contains(m.Value, "payload."+name) || strings.Contains(m.Value, "payload["+strconv.Quote(name)) {
			add(at, "hides a value that the measure %q is computed from", m.Name.In("en"))
		}
	}
}

func (c *Contract) checkTemplate(at, template string, add adder) {
	parts, err := splitTemplate(template)
	if err != nil {
		add(at, "%v", err)
		return
	}
	for _, p := range parts {
		if p.pointer != "" {
			c.needPlace(at, p.pointer, add)
		}
	}
}
