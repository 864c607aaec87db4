package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// noteRoutes is the customer file: who the customers are, what was talked about
// with whom, and the minutes that were saved. It owns the fact of a key, as the
// refund desk does.
func (s *Sandbox) noteRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return append([]route{
		{system: Notes, method: get, path: "/health", handle: s.health},
		{system: Notes, method: get, path: "/customers", handle: s.listCustomers},
		{system: Notes, method: get, path: "/conversations/{conversation_id}", object: "conversation_id", handle: s.getConversation},
		{system: Notes, method: get, path: "/people/{person_id}/may_save_minutes", object: "customer_id", handle: s.maySaveMinutes},
		{system: Notes, method: get, path: "/customers/{customer_id}/notes", object: "customer_id", handle: s.getNotes},
		{system: Notes, method: post, path: "/customers/{customer_id}/notes", object: "customer_id", write: true, handle: s.saveMinutes},
	}, s.operationRoutes(Notes, "customer_notes", words{undecided: "NOT_EXECUTED", working: "UNKNOWN"})...)
}

// customer is a customer as they are served. The version counts their notes.
type customer struct {
	ID      string `json:"customer_id"`
	Name    string `json:"customer_name"`
	Keeper  string `json:"keeper_id"` // who looks after them, and alone may write about them
	Version int64  `json:"version"`
}

const customerColumns = `id, name, keeper_id, version`

func (c *customer) scan(r row) error { return r.Scan(&c.ID, &c.Name, &c.Keeper, &c.Version) }

func findCustomer(ctx context.Context, q querier, id, lock string) (customer, *answer, error) {
	var c customer
	err := c.scan(q.QueryRowContext(ctx, `SELECT `+customerColumns+` FROM sandbox.customers WHERE id = $1 `+lock, id))
	if errors.Is(err, sql.ErrNoRows) {
		refusal := refuse(http.StatusNotFound, "customer-not-found", fmt.Sprintf("There is no customer %q.", id))
		return customer{}, &refusal, nil
	}
	if err != nil {
		return customer{}, nil, fmt.Errorf("reading a customer: %w", err)
	}
	return c, nil, nil
}

func (s *Sandbox) listCustomers(ctx context.Context, c *call) (answer, error) {
	return byID[customer]{what: "customers", columns: customerColumns, table: "customers",
		scan: (*customer).scan, id: func(c customer) string { return c.ID }}.page(ctx, s.db, c)
}

// conversation is something that was talked about with one customer.
type conversation struct {
	ID         string    `json:"conversation_id"`
	CustomerID string    `json:"customer_id"`
	Customer   string    `json:"customer_name"`
	Channel    string    `json:"channel"` // phone, chat or visit
	At         time.Time `json:"at"`
}

func findConversation(ctx context.Context, q querier, id string) (conversation, *answer, error) {
	c := conversation{ID: id}
	err := q.QueryRowContext(ctx, `
		SELECT v.customer_id, c.name, v.channel, v.at
		  FROM sandbox.conversations v JOIN sandbox.customers c ON c.id = v.customer_id WHERE v.id = $1`, id).
		Scan(&c.CustomerID, &c.Customer, &c.Channel, &c.At)
	if errors.Is(err, sql.ErrNoRows) {
		refusal := refuse(http.StatusNotFound, "conversation-not-found", fmt.Sprintf("There is no conversation %q.", id))
		return conversation{}, &refusal, nil
	}
	if err != nil {
		return conversation{}, nil, fmt.Errorf("reading a conversation: %w", err)
	}
	return c, nil, nil
}

// getConversation says whose conversation it was, never what was said.
func (s *Sandbox) getConversation(ctx context.Context, c *call) (answer, error) {
	v, refusal, err := findConversation(ctx, s.db, c.object)
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	return say(v, 0)
}

// maySaveMinutes says whether a person may write about a customer now.
func (s *Sandbox) maySaveMinutes(ctx context.Context, c *call) (answer, error) {
	about, refusal, err := findCustomer(ctx, s.db, c.object, "")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	permission := permission{Actor: c.PathValue("person_id"), Object: about.ID}
	if permission.Allowed = about.Keeper == permission.Actor; !permission.Allowed {
		permission.Reason = "looks after other customers"
	}
	return say(permission, 0)
}

// permission says whether somebody may do something with an object now.
type permission struct {
	Allowed bool   `json:"allowed"`
	Actor   string `json:"actor"`
	Object  string `json:"object_id"`
	Reason  string `json:"reason"` // empty when allowed
}

// noted is a customer, how much is on file, and what one key put there.
type noted struct {
	customer
	Notes          int        `json:"notes"`
	Key            *string    `json:"key"`
	Found          bool       `json:"found"` // something was saved under the key
	NoteID         *string    `json:"note_id"`
	ConversationID *string    `json:"conversation_id"`
	Minutes        *string    `json:"minutes"`
	SavedAt        *time.Time `json:"saved_at"`
}

func noteID(id int64) string { return "NT-" + strconv.FormatInt(id, 10) }

// getNotes tells how many notes a customer has, and what a key saved.
func (s *Sandbox) getNotes(ctx context.Context, c *call) (answer, error) {
	about, refusal, err := findCustomer(ctx, s.db, c.object, "")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	n := noted{customer: about}
	if c.key != "" {
		n.Key = &c.key
	}
	var id sql.NullInt64
	err = s.db.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM sandbox.customer_notes WHERE customer_id = $1), n.id, n.conversation_id, n.minutes, n.at
		  FROM (VALUES (1)) one LEFT JOIN sandbox.customer_notes n ON n.customer_id = $1 AND n.key = $2
		 ORDER BY n.id LIMIT 1`, about.ID, c.key).Scan(&n.Notes, &id, &n.ConversationID, &n.Minutes, &n.SavedAt)
	if err != nil {
		return answer{}, fmt.Errorf("reading notes: %w", err)
	}
	if n.Found = id.Valid; n.Found {
		name := noteID(id.Int64)
		n.NoteID = &name
	}
	return say(n, about.Version)
}

// maxMinutes is the longest note, in bytes.
const maxMinutes = 20_000

// minutesRequest is a note whose form is right.
type minutesRequest struct {
	CustomerID     string `json:"customer_id"`
	ConversationID string `json:"conversation_id"`
	Minutes        string `json:"minutes"` // Markdown, kept as it is
}

func readMinutesRequest(c *call) (req minutesRequest, refusal *answer) {
	bad := func(detail string) (minutesRequest, *answer) {
		a := refuse(http.StatusBadRequest, "malformed", detail)
		return minutesRequest{}, &a
	}
	if refusal := c.required(); refusal != nil {
		return req, refusal
	}
	if err := strictJSON(c.body, &req); err != nil {
		return bad("The body is {customer_id, conversation_id, minutes}: " + err.Error())
	}
	switch {
	case req.CustomerID != c.object:
		return bad("customer_id differs from the one in the path.")
	case !clean(req.ConversationID):
		return bad("conversation_id is no id.")
	case req.Minutes == "" || len(req.Minutes) > maxMinutes || !utf8.ValidString(req.Minutes) || strings.Contains(req.Minutes, "\x00"):
		return bad(fmt.Sprintf("minutes are 1 to %d bytes of text.", maxMinutes))
	}
	return req, nil
}

// saveMinutes puts the minutes of a conversation on file with its customer, and
// with nobody else.
func (s *Sandbox) saveMinutes(ctx context.Context, c *call) (answer, error) {
	req, refusal := readMinutesRequest(c)
	if refusal != nil {
		return *refusal, nil
	}
	bound := fingerprint("save_minutes", req.CustomerID, req.ConversationID, req.Minutes, c.actor)
	return s.once(ctx, c, "save_minutes", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyMinutes(ctx, tx, c, req)
	})
}

func applyMinutes(ctx context.Context, tx *sql.Tx, c *call, req minutesRequest) (answer, error) {
	about, refusal, err := findCustomer(ctx, tx, req.CustomerID, "FOR UPDATE")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	talk, refusal, err := findConversation(ctx, tx, req.ConversationID)
	switch {
	case err != nil || refusal != nil:
		return orRefuse(refusal), err
	case talk.CustomerID != about.ID:
		return refuse(http.StatusUnprocessableEntity, "wrong-customer", "The conversation was with another customer; nothing was saved."), nil
	case c.actor != "" && c.actor != about.Keeper:
		return refuse(http.StatusUnprocessableEntity, "not-their-customer", "Somebody else looks after this customer; nothing was saved."), nil
	}
	var id int64
	var at time.Time
	err = tx.QueryRowContext(ctx, `
		WITH counted AS (UPDATE sandbox.customers SET version = version + 1 WHERE id = $2)
		INSERT INTO sandbox.customer_notes (key, customer_id, conversation_id, minutes, actor)
		VALUES ($1, $2, $3, $4, nullif($5, '')) RETURNING id, at`, c.key, about.ID, talk.ID, req.Minutes, c.actor).Scan(&id, &at)
	if err != nil {
		return answer{}, fmt.Errorf("saving minutes: %w", err)
	}
	return say(struct {
		Status         string    `json:"status"`
		Operation      string    `json:"operation_id"`
		NoteID         string    `json:"note_id"`
		CustomerID     string    `json:"customer_id"`
		ConversationID string    `json:"conversation_id"`
		Version        int64     `json:"version"`
		SavedAt        time.Time `json:"saved_at"`
	}{succeeded, c.key, noteID(id), about.ID, talk.ID, about.Version + 1, at}, about.Version+1)
}

// setKeeper gives a customer to somebody else.
func (s *Sandbox) setKeeper(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Keeper string `json:"keeper_id"`
	}
	id := r.PathValue("customer_id")
	if err := strictJSON(body, &change); err != nil || change.Keeper == "" {
		return badChange("The body is {keeper_id}.")
	}
	if !clean(id, change.Keeper) {
		return unclean(), nil
	}
	if _, err := s.db.ExecContext(ctx, `UPDATE sandbox.customers SET keeper_id = $2 WHERE id = $1`, id, change.Keeper); err != nil {
		return answer{}, fmt.Errorf("changing who looks after a customer: %w", err)
	}
	c, refusal, err := findCustomer(ctx, s.db, id, "")
	if err != nil || refusal != nil {
		return orRefuse(refusal), err
	}
	return say(c, c.Version)
}
