package execution_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/action"
	"countersign/execution"
	"countersign/execution/api"
)

const saveMinutes = "notes.save_minutes"

// onFile is what the customer file has under a key.
func (b *bench) onFile(customer, key string) (minutes string, found bool) {
	b.T.Helper()
	var n struct {
		Found   bool   `json:"found"`
		Minutes string `json:"minutes"`
	}
	b.must(json.Unmarshal([]byte(b.shopDo("GET", "/notes/customers/"+customer+"/notes?execution_key="+key, b.tokens.NotesRead, "")), &n))
	return n.Minutes, n.Found
}

// Minutes are written once. When they could not be saved, that is what is said;
// and they are saved later as they are, from the action that holds them.
func TestB3_WhatWasNotSavedIsSavedAsItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	written := 0
	generate := func() string {
		written++
		return "# 通话纪要 · Zhou Ling\n\n- kettle by *Friday* ☕\n- 42.00 €, not 4.20 €\n"
	}
	payload, err := json.Marshal(map[string]string{"customer_id": "c-2016", "conversation_id": "talk-501", "minutes": generate()})
	b.must(err)
	ask := api.Propose{Tool: saveMinutes, Actor: &api.Actor{ID: "u-mia-chen"}, Payload: payload, Entry: "chat", Draft: true}
	draft, err := s.client.Propose(t.Context(), ask, "minutes of talk-501")
	b.must(err)
	s.saysOnly(draft.ID, "not_submitted")
	proposed, err := s.client.Submit(t.Context(), draft.ID, draft.Version)
	b.must(err)

	b.arm(`{"system":"notes","fault":"error-before","status":423}`)
	b.approve(b.get(proposed.ID))
	b.start(b.config())
	lost := b.awaitState(proposed.ID, action.Failed)
	s.says(lost.ID, "failed")
	if _, found := b.onFile("c-2016", lost.ExecutionKey); found || len(lost.Attempts) != 1 || lost.Receipts[0].HTTPStatus != 423 {
		t.Errorf("found %v: %s", found, story(lost))
	}

	// Nobody writes the text again: it is in the action that failed.
	held, err := s.client.Get(t.Context(), lost.ID)
	b.must(err)
	ask.Payload, ask.Draft, ask.Replaces = held.Payload, false, held.ID
	again, err := s.client.Propose(t.Context(), ask, "minutes of talk-501, saved again")
	b.must(err)
	if again.PayloadHash != held.PayloadHash || again.ExecutionKey == held.ExecutionKey {
		t.Errorf("payload %s under %s, before %s under %s", again.PayloadHash, again.ExecutionKey, held.PayloadHash, held.ExecutionKey)
	}
	b.approve(b.get(again.ID))
	saved := b.awaitState(again.ID, action.Applied)
	s.says(saved.ID, "completed")
	if minutes, found := b.onFile("c-2016", saved.ExecutionKey); !found || !strings.Contains(string(payload), jsonText(minutes)) {
		t.Errorf("on file %v: %q", found, minutes)
	}
	if written != 1 || b.executions("notes", lost.ExecutionKey) != 0 || b.executions("notes", saved.ExecutionKey) != 1 {
		t.Errorf("written %d times", written)
	}
}

// jsonText is a text as it stands in JSON.
func jsonText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return "cannot be written"
	}
	return string(raw)
}

// What never arrived is asked for and sent once more: the same bytes under the
// same key.
func TestB3_ASavingThatGotLostIsRepeatedByteForByte(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.arm(`{"system":"notes","fault":"lost-request"}`)
	a := b.approve(b.propose(saveMinutes, "u-mia-chen", `{"customer_id":"c-2016","conversation_id":"talk-504","minutes":"Called back."}`, ""))
	b.start(b.config())
	a = b.awaitState(a.ID, action.Applied)
	if len(a.Attempts) != 2 || a.Attempts[0].Fingerprint != a.Attempts[1].Fingerprint || b.executions("notes", a.ExecutionKey) != 1 {
		t.Errorf("%s", story(a))
	}
	if minutes, _ := b.onFile("c-2016", a.ExecutionKey); minutes != "Called back." {
		t.Errorf("on file: %q", minutes)
	}
}

// The form is right and the customer is wrong: nothing is sent.
func TestB3_TheWrongCustomerIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.speaker()
	other := b.approve(b.propose(saveMinutes, "u-mia-chen", `{"customer_id":"c-2017","conversation_id":"talk-501","minutes":"x"}`, ""))
	notHers := b.approve(b.propose(saveMinutes, "u-mia-chen", `{"customer_id":"c-2018","conversation_id":"talk-503","minutes":"x"}`, ""))
	b.start(b.config())
	for id, code := range map[string]string{other.ID: action.PreconditionFailed, notHers.ID: execution.Forbidden} {
		a := b.awaitState(id, action.Failed)
		if a.FailureCode != code || len(a.Attempts) != 0 {
			t.Errorf("failed with %q after %d attempts, want %q", a.FailureCode, len(a.Attempts), code)
		}
		s.says(id, "not_submitted")
	}
	for _, customer := range []string{"c-2017", "c-2018"} {
		for _, key := range []string{other.ExecutionKey, notHers.ExecutionKey} {
			if _, found := b.onFile(customer, key); found {
				t.Errorf("something is on the file of %s", customer)
			}
		}
	}
}
