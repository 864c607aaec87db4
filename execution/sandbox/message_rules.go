package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// messageRule is one document about what may be sent. Only the current one is
// in force; a proposed one changes nothing, whatever it says.
type messageRule struct {
	Document     string    `json:"document_id"`
	Status       string    `json:"status"` // current, proposed
	Rule         string    `json:"rule"`
	BodyLimit    int       `json:"body_limit_bytes"`
	RequestLimit int       `json:"request_limit_bytes"`
	UpdatedAt    time.Time `json:"updated_at"`
}

const ruleColumns = `document_id, status, rule, body_limit_bytes, request_limit_bytes, updated_at`

func (m *messageRule) scan(r row) error {
	return r.Scan(&m.Document, &m.Status, &m.Rule, &m.BodyLimit, &m.RequestLimit, &m.UpdatedAt)
}

// currentRule is the rule in force.
func currentRule(ctx context.Context, q querier) (messageRule, error) { return ruleAbout(ctx, q, "") }

// ruleAbout is the document that a question names by its id or its name, and
// otherwise the rule in force.
func ruleAbout(ctx context.Context, q querier, question string) (messageRule, error) {
	var m messageRule
	err := m.scan(q.QueryRowContext(ctx, `
		SELECT `+ruleColumns+`
		  FROM sandbox.message_rules, lower($1::text) AS asked
		 WHERE status = 'current' OR strpos(asked, lower(document_id)) > 0 OR strpos(asked, lower(name)) > 0
		 ORDER BY strpos(asked, lower(document_id)) = 0 AND strpos(asked, lower(name)) = 0, status, document_id LIMIT 1`, question))
	if err != nil {
		return messageRule{}, fmt.Errorf("reading a rule of the message service: %w", err)
	}
	return m, nil
}

// lookupRule answers a question about the rules with one document.
func (s *Sandbox) lookupRule(ctx context.Context, c *call) (answer, error) {
	question := c.URL.Query().Get("question")
	if question != "" && !readable(question) {
		return refuse(http.StatusBadRequest, "malformed", "question is up to 500 bytes of text."), nil
	}
	m, err := ruleAbout(ctx, s.db, question)
	if err != nil {
		return answer{}, err
	}
	return say(m, 0)
}

// proposeRule writes a document that is only proposed. There is no way here to
// put one into force.
func (s *Sandbox) proposeRule(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var proposed struct {
		Rule      string `json:"rule"`
		BodyLimit int    `json:"body_limit_bytes"`
	}
	document := r.PathValue("document_id")
	if err := strictJSON(body, &proposed); err != nil || !readable(proposed.Rule) || proposed.BodyLimit < 1 {
		return badChange("The body is {rule, body_limit_bytes}.")
	}
	if !clean(document) {
		return unclean(), nil
	}
	result, err := s.db.ExecContext(ctx, `
		INSERT INTO sandbox.message_rules (document_id, name, status, rule, body_limit_bytes, request_limit_bytes)
		VALUES ($1, $1, 'proposed', $2, $3, 4096)
		ON CONFLICT (document_id) DO UPDATE SET rule = $2, body_limit_bytes = $3, updated_at = clock_timestamp()
		 WHERE message_rules.status = 'proposed'`, document, proposed.Rule, proposed.BodyLimit)
	if err != nil {
		return answer{}, fmt.Errorf("proposing a rule: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return badChange("The rule in force is not changed here.")
	}
	return say(map[string]string{"document_id": document, "status": "proposed"}, 0)
}

// setMember lets somebody belong to a conversation, or not any more. One that
// is not there yet is begun.
func (s *Sandbox) setMember(ctx context.Context, r *http.Request, body []byte) (answer, error) {
	var change struct {
		Member *bool `json:"member"`
	}
	conversation, person := r.PathValue("conversation_id"), r.PathValue("person_id")
	if err := strictJSON(body, &change); err != nil || change.Member == nil {
		return badChange("The body is {member: true or false}.")
	}
	if !clean(conversation, person) {
		return unclean(), nil
	}
	query := `DELETE FROM sandbox.message_members WHERE conversation_id = $1 AND person_id = $2`
	if *change.Member {
		query = `WITH begun AS (INSERT INTO sandbox.message_conversations (id, name) VALUES ($1, $1) ON CONFLICT DO NOTHING)
		         INSERT INTO sandbox.message_members (conversation_id, person_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	}
	if _, err := s.db.ExecContext(ctx, query, conversation, person); err != nil {
		return answer{}, fmt.Errorf("changing who belongs to a conversation: %w", err)
	}
	return say(map[string]string{"conversation_id": conversation, "person_id": person, "member": strconv.FormatBool(*change.Member)}, 0)
}

// forget is what a restart does to what is held in memory.
func (s *Sandbox) forget(ctx context.Context, _ *http.Request, _ []byte) (answer, error) {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM sandbox.messages`); err != nil {
		return answer{}, fmt.Errorf("forgetting messages: %w", err)
	}
	return say(map[string]bool{"forgotten": true}, 0)
}
