package contract

import (
	"fmt"
	"slices"
	"strconv"

	"countersign/action"
)

// Step is one of several wire requests of an action, made in their order, each
// under the key execution_key:name. What it leaves open is as in the execution
// part; its post-conditions are read back before the next step begins.
type Step struct {
	Name             string       `json:"name"`
	HTTP             HTTP         `json:"http"`
	Proves           action.Proof `json:"proves"`
	DefiniteFailures []int        `json:"definite_failures"`
	Conflicts        []int        `json:"conflicts"`
	StatusQuery      *StepQuery   `json:"status_query,omitempty"`
	Postconditions   []Condition  `json:"postconditions,omitempty"`
	Compensation     string       `json:"compensation,omitempty"`
}

// StepQuery asks what became of a step's key; how often is said by the
// contract's own query.
type StepQuery struct {
	Tool    string   `json:"tool"`
	Outcome Readings `json:"outcome"`
}

// ForStep returns the contract as if one of its steps were all of it: how it is
// called, what its answers prove, how it is asked about and read back. The name
// is empty where there are no steps; InvalidArgument when there is none of it.
func (c *Contract) ForStep(name string) (*Contract, error) {
	if name == "" && len(c.Execution.Steps) == 0 {
		return c, nil
	}
	at := slices.IndexFunc(c.Execution.Steps, func(s Step) bool { return s.Name == name })
	if at < 0 {
		return nil, action.Refuse(action.InvalidArgument, "The contract has no step of this name.").With("step", name)
	}
	s, one := &c.Execution.Steps[at], *c
	e := &one.Execution
	one.HTTP, e.Steps, e.Postconditions, e.Compensation = &s.HTTP, nil, s.Postconditions, s.Compensation
	e.Proves, e.DefiniteFailures, e.Conflicts = s.Proves, s.DefiniteFailures, s.Conflicts
	if s.StatusQuery != nil {
		query := *c.Execution.StatusQuery
		query.Tool, query.Outcome = s.StatusQuery.Tool, s.StatusQuery.Outcome
		e.StatusQuery = &query
	}
	return &one, nil
}

// fillSteps completes each step from the execution part.
func (f *filler) fillSteps() {
	steps := f.full.at("/execution/steps")
	if steps == nil {
		return
	}
	for i, step := range steps.items {
		fillHTTP(step.get("http"))
		for _, name := range []string{"proves", "definite_failures", "conflicts"} {
			if step.get(name) == nil {
				step.set(name, f.full.at("/execution/"+name))
			}
		}
		if query := step.get("status_query"); query != nil {
			f.readings(query, "/execution/steps/"+strconv.Itoa(i)+"/status_query/outcome")
		}
	}
}

func (c *Contract) checkSteps(add adder) {
	var names []string
	steps := c.Execution.Steps
	if len(steps) > 0 && c.HTTP != nil {
		add("/http", "must be left out: each step has its own")
	}
	if len(steps) > 0 && c.Mode == Read {
		add("/execution/steps", "a tool that only reads has no steps")
	}
	if len(steps) > 0 && c.Execution.Retry != RetrySameKey && c.Execution.KeyLifetime.Duration == 0 {
		add("/execution/key_lifetime", "is required with steps: one that was never sent is begun only while the keys of those before it are remembered")
	}
	for i, s := range steps {
		base := "/execution/steps/" + strconv.Itoa(i)
		if slices.Contains(names, s.Name) {
			add(base+"/name", "is the name of an earlier step")
		}
		names = append(names, s.Name)
		c.checkHTTP(base+"/http", &steps[i].HTTP, add)
		checkStatuses(base, s.DefiniteFailures, s.Conflicts, add)
		if s.Proves != c.Execution.Proves && s.Proves.Stronger(c.Execution.Proves) == c.Execution.Proves {
			add("/execution/proves", "is more than the step %q can prove", s.Name)
		}
		if s.StatusQuery != nil && c.Execution.StatusQuery == nil {
			add(base+"/status_query", "needs /execution/status_query, which says how often is asked")
		}
		if len(s.Postconditions) > 0 && i == len(steps)-1 {
			add(base+"/postconditions", "of the last step are those of the whole: put them under /execution/postconditions")
		}
	}
}

// stepReferences lists the other tools that the steps need.
func (c *Contract) stepReferences() []Reference {
	var refs []Reference
	for i, s := range c.Execution.Steps {
		base := fmt.Sprintf("/execution/steps/%d", i)
		if s.StatusQuery != nil {
			refs = append(refs, Reference{base + "/status_query/tool", s.StatusQuery.Tool, true})
		}
		for j, p := range s.Postconditions {
			refs = append(refs, Reference{base + "/postconditions/" + strconv.Itoa(j) + "/read", p.Read, true})
		}
		if s.Compensation != "" {
			refs = append(refs, Reference{base + "/compensation", s.Compensation, false})
		}
	}
	return refs
}
