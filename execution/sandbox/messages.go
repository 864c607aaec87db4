package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// What the message service says of a message id in a conversation.
const (
	inMemory    = "IN_MEMORY"     // by the person who asks and, where a body is asked about, with that body
	takenByElse = "TAKEN"         // another message has the id
	notInMemory = "NOT_IN_MEMORY" // which proves nothing: it may be on its way, or forgotten
)

// messageRoutes is the message service: conversations of which only members
// know, rules in force and proposed, and messages that it holds in memory. It
// keeps no record of keys: an id that it holds is refused, whoever repeats it.
func (s *Sandbox) messageRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{system: Messages, method: get, path: "/health", handle: s.health},
		{system: Messages, method: get, path: "/rules/lookup", handle: s.lookupRule},
		{system: Messages, method: get, path: "/people/{person_id}/may_send", object: "conversation_id", handle: s.maySend},
		{system: Messages, method: get, path: "/conversations/{conversation_id}/messages/{key}", object: "conversation_id", handle: s.getMessage},
		{system: Messages, method: post, path: "/conversations/{conversation_id}/messages/{key}", object: "conversation_id", write: true, handle: s.sendMessage},
	}
}

// message is one message as the service holds it.
type message struct {
	Conversation string    `json:"conversation_id"`
	ID           string    `json:"message_id"`
	Author       string    `json:"author"`
	Body         string    `json:"body"`
	Bytes        int       `json:"bytes"` // of the body
	AcceptedAt   time.Time `json:"accepted_at"`
}

func findMessage(ctx context.Context, q querier, conversation, id string) (message, bool, error) {
	m := message{Conversation: conversation, ID: id}
	err := q.QueryRowContext(ctx, `SELECT author, body, accepted_at FROM sandbox.messages WHERE conversation_id = $1 AND id = $2`,
		conversation, id).Scan(&m.Author, &m.Body, &m.AcceptedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return message{}, false, nil
	}
	if err != nil {
		return message{}, false, fmt.Errorf("reading a message: %w", err)
	}
	m.Bytes = len(m.Body)
	return m, true, nil
}

// hidden is the answer to people who do not belong to a conversation, and the
// same when there is none.
func hidden() answer {
	return refuse(http.StatusNotFound, "conversation-not-found", "There is no such conversation.")
}

func isMember(ctx context.Context, q querier, conversation, person string) (bool, error) {
	var member bool
	err := q.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM sandbox.message_members WHERE conversation_id = $1 AND person_id = $2)`,
		conversation, person).Scan(&member)
	if err != nil {
		return false, fmt.Errorf("reading who belongs to a conversation: %w", err)
	}
	return member, nil
}

// maySend says whether a person may write to a conversation now. To one who may
// not it does not tell whether there is such a conversation.
func (s *Sandbox) maySend(ctx context.Context, c *call) (answer, error) {
	person := c.PathValue("person_id")
	if !clean(person) {
		return unclean(), nil
	}
	member, err := isMember(ctx, s.db, c.object, person)
	if err != nil {
		return answer{}, err
	}
	why := "belongs to the conversation"
	if !member {
		why = "does not belong to it, or there is no such conversation"
	}
	return say(struct {
		Allowed      bool   `json:"allowed"`
		Actor        string `json:"actor"`
		Conversation string `json:"conversation_id"`
		Reason       string `json:"reason"`
	}{member, person, c.object, why}, 0)
}

// getMessage tells what the memory holds under an id. Nothing in it says whose
// request brought a message there.
func (s *Sandbox) getMessage(ctx context.Context, c *call) (answer, error) {
	member, err := isMember(ctx, s.db, c.object, c.actor)
	if err != nil {
		return answer{}, err
	}
	if !member {
		return hidden(), nil
	}
	m, found, err := findMessage(ctx, s.db, c.object, c.key)
	if err != nil {
		return answer{}, err
	}
	held := struct {
		Conversation string     `json:"conversation_id"`
		ID           string     `json:"message_id"`
		Found        bool       `json:"found"`
		Status       string     `json:"status"`
		Author       *string    `json:"author"`
		Body         *string    `json:"body"`
		AcceptedAt   *time.Time `json:"accepted_at"`
	}{Conversation: c.object, ID: c.key, Found: found, Status: notInMemory}
	if found {
		held.Author, held.Body, held.AcceptedAt, held.Status = &m.Author, &m.Body, &m.AcceptedAt, inMemory
		asked := c.URL.Query()
		if m.Author != c.actor || asked.Has("body") && asked.Get("body") != m.Body {
			held.Status = takenByElse
		}
	}
	return say(held, 0)
}

// sendMessage takes a message into memory, once per id: the same again is 409,
// and so is anything else under that id.
func (s *Sandbox) sendMessage(ctx context.Context, c *call) (answer, error) {
	rule, err := currentRule(ctx, s.db)
	if err != nil {
		return answer{}, err
	}
	body, refusal := readMessage(c, rule)
	if refusal != nil {
		return *refusal, nil
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return answer{}, fmt.Errorf("starting to take a message: %w", err)
	}
	defer tx.Rollback() // a no-op after the commit; what makes a lie of it otherwise
	a, err := takeMessage(ctx, tx, message{Conversation: c.object, ID: c.key, Author: c.actor, Body: body, Bytes: len(body)}, rule)
	if err != nil || c.fault.Kind == Lie {
		return a, err
	}
	if err := tx.Commit(); err != nil {
		return answer{}, fmt.Errorf("taking a message: %w", err)
	}
	return a, nil
}

// readMessage reads the body of a message from a request whose form is right.
func readMessage(c *call, r messageRule) (string, *answer) {
	var sent struct {
		Body *string `json:"body"`
	}
	var refusal answer
	switch {
	case len(c.body) > r.RequestLimit:
		refusal = refuse(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("A request has %d bytes at most.", r.RequestLimit))
	case c.actor == "":
		refusal = refuse(http.StatusBadRequest, "malformed", "Say on whose behalf with X-Actor.")
	case !utf8.Valid(c.body) || strictJSON(c.body, &sent) != nil || sent.Body == nil || strings.Contains(*sent.Body, "\x00"):
		refusal = refuse(http.StatusBadRequest, "malformed", "The request is {body}, in UTF-8.")
	default:
		return *sent.Body, nil
	}
	return "", &refusal
}

func takeMessage(ctx context.Context, tx *sql.Tx, m message, r messageRule) (answer, error) {
	member, err := isMember(ctx, tx, m.Conversation, m.Author)
	switch {
	case err != nil:
		return answer{}, err
	case !member:
		return hidden(), nil
	case m.Bytes == 0 || m.Bytes > r.BodyLimit:
		return refuse(http.StatusUnprocessableEntity, "body-length", fmt.Sprintf("A body has 1 to %d bytes of UTF-8, not %d.", r.BodyLimit, m.Bytes)), nil
	}
	err = tx.QueryRowContext(ctx, `
		WITH held AS (
			INSERT INTO sandbox.messages (conversation_id, id, author, body) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING RETURNING accepted_at
		), noted AS (
			INSERT INTO sandbox.message_effects (key, conversation_id, author, body, at)
			SELECT $2, $1, $3, $4, accepted_at FROM held
		)
		SELECT accepted_at FROM held`, m.Conversation, m.ID, m.Author, m.Body).Scan(&m.AcceptedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return refuse(http.StatusConflict, "duplicate-id", "A message of this conversation has this id already. This request added nothing."), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("holding a message: %w", err)
	}
	return say(struct {
		Status string `json:"status"`
		message
	}{"accepted_in_memory", m}, 0)
}
