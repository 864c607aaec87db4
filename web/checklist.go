package web

// Checklist is the first minutes of an empty console: four steps, each done or
// to do.
type Checklist struct {
	People  int // who may decide
	Tools   int
	Clients int
	Actions int
	Curl    Text // a test proposal, ready to paste
	Admin   bool // the viewer may do the steps
}

// done reports whether nothing is left to do.
func (c Checklist) done() bool { return c.People > 0 && c.Tools > 0 && c.Clients > 0 && c.Actions > 0 }
