package handlers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"countersign/people"
	"countersign/web"
)

// looking knows who has the page of which action open: those whose browsers
// hold its stream at this process. It is a courtesy between colleagues, and
// nothing depends on it: nobody is kept from deciding.
type looking struct {
	mu sync.Mutex
	at map[string]map[string]*looker // by action and person
}

type looker struct {
	name string
	tabs int
}

// enter notes that somebody looks at an action until leave is called.
func (l *looking) enter(actionID string, p people.Person) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]map[string]*looker{}
	}
	if l.at[actionID] == nil {
		l.at[actionID] = map[string]*looker{}
	}
	who := l.at[actionID][p.ID]
	if who == nil {
		who = &looker{}
		l.at[actionID][p.ID] = who
	}
	who.name = p.Name
	who.tabs++
	return func() { l.leave(actionID, p.ID) }
}

func (l *looking) leave(actionID, person string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who := l.at[actionID][person]; who.tabs > 1 {
		who.tabs--
		return
	}
	if delete(l.at[actionID], person); len(l.at[actionID]) == 0 {
		delete(l.at, actionID)
	}
}

// besides names who looks at an action, but for one person.
func (l *looking) besides(actionID, person string) []web.Text {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []web.Text
	for _, id := range slices.Sorted(maps.Keys(l.at[actionID])) {
		if id != person {
			names = append(names, web.OutsideName(l.at[actionID][id].name))
		}
	}
	return names
}

// streamAction is held by the open page of an action: who holds it looks at the
// action. It says what became of the decision that the page tells of.
func (s *server) streamAction(w http.ResponseWriter, r *http.Request, c caller) error {
	snap, err := s.see(r.Context(), c, parameter(r, "id"))
	if err != nil {
		return err
	}
	defer s.looking.enter(snap.Action.ID, c.session.Person)()
	return s.stream(w, r, c, func(context.Context) (string, error) {
		if flash := s.decidedFlash(r, c); flash != nil {
			return fmt.Sprintf("event: now\ndata: %s\n\n", oneLine(flash.Now(speaking(r, c, time.Time{})))), nil
		}
		return ":\n\n", nil
	})
}
