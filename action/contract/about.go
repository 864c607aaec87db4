package contract

import "slices"

// AboutOther reports whether an answer of a read tool names another object, or
// another operation, than input, with which the tool is asked. A target that says
// where in the answer it stands has to stand there; whatever else names what is
// asked about (see naming) need not be in the answer, and is the same where it is.
func (c *Contract) AboutOther(input, answer []byte) bool {
	asked, err := parsePayload(input)
	if err != nil {
		return false
	}
	told, err := parseJSON(answer, maxDepth)
	if err != nil {
		return c.Target != nil && len(c.Target.Answer) > 0
	}
	for _, pointer := range c.naming() {
		want, known := idText(asked.at(pointer))
		if got, named := idText(told.at(pointer)); known && named && got != want {
			return true
		}
	}
	if c.Target == nil {
		return false
	}
	for i, pointer := range c.Target.Answer {
		want, known := idText(asked.at(c.Target.ID[i]))
		if got, named := idText(told.at(pointer)); known && (!named || got != want) {
			return true
		}
	}
	return false
}

// naming are the places in the input of a read tool that name what is asked about:
// its target, what else it requires and the key of an operation. Who asks is none.
func (c *Contract) naming() []string {
	var all []string
	if c.Target != nil && len(c.Target.Answer) == 0 {
		all = slices.Clone(c.Target.ID)
	}
	for _, f := range c.fields {
		place := join("", f.name)
		switch f.name {
		case "actor_id", "target_type":
			continue
		case "execution_key", "idempotency_key", "target_id":
		default:
			if !f.required || c.Target != nil && slices.Contains(c.Target.ID, place) {
				continue
			}
		}
		all = append(all, place)
	}
	return all
}
