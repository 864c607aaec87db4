package handlers

import (
	"context"
	"net/http"
	"slices"

	"countersign/action"
	"countersign/people"
	"countersign/web"
)

// Demo is the small company beside a demo's console: what its guide shows, what
// can go wrong in it, and a place to try a tool of one's own. Refusals are for
// the person who asked.
type Demo interface {
	// Steps are the steps of the guide, in order.
	Steps(ctx context.Context) ([]DemoStep, error)
	// Play makes what a step is about happen, or its turn. A repeated op has
	// happened. It returns the action to look at.
	Play(ctx context.Context, step string, turn bool, op string) (actionID string, err error)
	// Faults are what goes wrong in the company, for how many requests.
	Faults(ctx context.Context) ([]DemoFault, error)
	// Break makes the next requests to a system go wrong. A repeated op has
	// happened.
	Break(ctx context.Context, f DemoFault, op string) error
	// Mend takes every fault away.
	Mend(ctx context.Context) error
	// Try stores a tool definition and proposes a payload of it. When several
	// definitions were pasted it returns the names to choose from.
	Try(ctx context.Context, t DemoTrial) (actionID string, among []string, err error)
}

// DemoStep is a danger that the guide shows.
type DemoStep struct {
	Name     string
	ActionID string // "" before it was played
	RestID   string // the action that its turn proposed, "" for none
	Turns    bool   // something can happen to it meanwhile
	InPart   bool   // not before it was done in part
	Turned   bool   // and has
	// Over asks whether it can be played no more; nil: it always can.
	Over func(context.Context) bool
}

// DemoFault is a way in which requests to a system go wrong.
type DemoFault struct {
	System string
	Kind   string
	Left   int // how many requests
}

// DemoTrial is a tool that somebody tries, with what it would be called with.
type DemoTrial struct {
	Definition []byte // one, or a list that holds it
	Tool       string // its name among several
	Payload    []byte
	Op         string
}

// demoRoutes are only there in a demo.
func demoRoutes() []route {
	player := signedIn(people.RoleSupport, people.RoleOps, people.RoleAdmin) // auditors look
	return []route{
		{get, "/demo", "guide", signedIn(), (*server).showGuide, 0, nil},
		{post, "/demo/steps", "playStep", player, (*server).playStep, 0, nil},
		{get, "/demo/faults", "faults", signedIn(), (*server).showFaults, 0, nil},
		{post, "/demo/faults", "breakSystem", player, (*server).breakSystem, 0, nil},
		{post, "/demo/faults/mend", "mendSystems", player, (*server).mendSystems, 0, nil},
		{get, "/demo/try", "tryForm", signedIn(), (*server).showTry, 0, nil},
		{post, "/demo/try", "try", player, (*server).tryTool, 0, nil},
	}
}

// showFaults is the switchboard of what goes wrong in the company.
func (s *server) showFaults(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.faults(w, r, c, nil, http.StatusOK)
}

func (s *server) faults(w http.ResponseWriter, r *http.Request, c caller, refused *web.Refusal, status int) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	on, err := s.Demo.Faults(r.Context())
	if err != nil {
		return err
	}
	p := web.FaultsPage{Op: newOp(), Refused: refused}
	for _, f := range on {
		p.On = append(p.On, web.Fault{System: f.System, Kind: f.Kind, Left: f.Left})
	}
	return s.show(speaking(r, c, now), w, status, web.FaultsView(s.formFrame(r, c, web.Guide, "/demo/faults"), p))
}

func (s *server) breakSystem(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	fault := DemoFault{System: fields.Get("system"), Kind: fields.Get("kind"), Left: 1}
	if fields.Get("count") == "5" {
		fault.Left = 5
	}
	err = unknownFault(fault)
	if err == nil {
		err = s.Demo.Break(r.Context(), fault, fields.Get("op"))
	}
	if err != nil && onForm(err) {
		return s.faults(w, r, c, refusalOf(err), refusedStatus(w, r, err))
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, "/demo/faults")
}

func unknownFault(f DemoFault) error {
	if slices.Contains(web.FaultSystems(), f.System) && slices.Contains(web.FaultKinds(), f.Kind) {
		return nil
	}
	return action.Refuse(action.InvalidArgument, "Choose a system and what goes wrong from the lists.")
}

func (s *server) mendSystems(w http.ResponseWriter, r *http.Request, _ caller) error {
	if err := s.Demo.Mend(r.Context()); err != nil {
		return err
	}
	return seeOther(w, r, "/demo/faults")
}

// showTry takes a tool definition and a payload of one's own.
func (s *server) showTry(w http.ResponseWriter, r *http.Request, c caller) error {
	return s.try(w, r, c, web.TryPage{Op: newOp(), Definition: web.TryDefinition, Payload: web.TryPayload}, http.StatusOK)
}

func (s *server) try(w http.ResponseWriter, r *http.Request, c caller, p web.TryPage, status int) error {
	now, err := s.clock(r.Context(), c)
	if err != nil {
		return err
	}
	return s.show(speaking(r, c, now), w, status, web.TryView(s.formFrame(r, c, web.Guide, "/demo/try"), p))
}

func (s *server) tryTool(w http.ResponseWriter, r *http.Request, c caller) error {
	fields, err := form(w, r)
	if err != nil {
		return err
	}
	id, among, err := s.Demo.Try(r.Context(), DemoTrial{Definition: []byte(fields.Get("definition")), Tool: fields.Get("tool"),
		Payload: []byte(fields.Get("payload")), Op: fields.Get("op")})
	switch {
	case err == nil:
		return seeOther(w, r, "/actions/"+id)
	case action.IsCode(err, action.Internal):
		return err
	}
	p := web.TryPage{Op: newOp(), Definition: own(fields, "definition"), Payload: own(fields, "payload"), Chosen: fields.Get("tool"), Refused: refusalOf(err)}
	for _, name := range among {
		p.Among = append(p.Among, web.Option{Value: name, Label: web.Outside(name)})
	}
	return s.try(w, r, c, p, refusedStatus(w, r, err))
}
