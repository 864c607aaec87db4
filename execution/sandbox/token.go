package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// minToken is the shortest token that is accepted, in bytes.
const minToken = 16

// Tokens are the secrets of the systems: bearer tokens, and what callbacks are
// signed with. Reading and writing are
// separate: a read token is answered 403 on a write. Control opens /faults and
// the back-office routes, and no business system.
type Tokens struct {
	CatalogRead, CatalogWrite       string
	RefundsRead, RefundsWrite       string
	OrdersRead, OrdersWrite         string
	NotesRead, NotesWrite           string
	LedgerRead, LedgerWrite         string
	ServiceRead, ServiceWrite       string
	MessagesRead, MessagesWrite     string
	DeliveriesRead, DeliveriesWrite string // there is nothing to write
	Control                         string

	// RefundsSecret signs the callbacks of the refund desk, and RefundsNextSecret
	// is the one to move to: whsec_ and base64 of 24 to 64 bytes. ServiceSecret and
	// ServiceNextSecret are those of the service desk.
	RefundsSecret, RefundsNextSecret string
	ServiceSecret, ServiceNextSecret string
}

// pair are the credentials of one system.
type pair struct{ read, write *string }

func (t *Tokens) pairs() map[string]pair {
	return map[string]pair{
		Catalog:    {&t.CatalogRead, &t.CatalogWrite},
		Refunds:    {&t.RefundsRead, &t.RefundsWrite},
		Orders:     {&t.OrdersRead, &t.OrdersWrite},
		Notes:      {&t.NotesRead, &t.NotesWrite},
		Ledger:     {&t.LedgerRead, &t.LedgerWrite},
		Service:    {&t.ServiceRead, &t.ServiceWrite},
		Messages:   {&t.MessagesRead, &t.MessagesWrite},
		Deliveries: {&t.DeliveriesRead, &t.DeliveriesWrite},
	}
}

// Of returns the credentials of one of the systems; they are empty for any other name.
func (t Tokens) Of(system string) (read, write string) {
	p, ok := t.pairs()[system]
	if !ok {
		return "", ""
	}
	return *p.read, *p.write
}

// complete fills empty tokens with random ones. It fails when a token is too
// short, or the same as another and so would grant more than its name says.
func (t Tokens) complete() (Tokens, error) {
	seen := map[string]bool{}
	for _, secret := range []*string{&t.RefundsSecret, &t.RefundsNextSecret, &t.ServiceSecret, &t.ServiceNextSecret} {
		if *secret == "" {
			*secret = newSecret()
		}
		if _, err := secretKey(*secret); err != nil {
			return Tokens{}, err
		}
		if seen[*secret] {
			return Tokens{}, errors.New("sandbox signing secrets must differ from one another")
		}
		seen[*secret] = true
	}
	tokens := []*string{&t.Control}
	for _, p := range t.pairs() {
		tokens = append(tokens, p.read, p.write)
	}
	for _, token := range tokens {
		if *token == "" {
			*token = rand.Text()
		}
		if len(*token) < minToken {
			return Tokens{}, errors.New("sandbox tokens need at least 16 characters")
		}
		if seen[*token] {
			return Tokens{}, errors.New("sandbox tokens must differ from one another")
		}
		seen[*token] = true
	}
	return t, nil
}

// credential is what a bearer token may do in one system.
type credential string

const (
	noCredential    credential = "none"
	readCredential  credential = "read"
	writeCredential credential = "write"
)

func (t Tokens) credential(system string, r *http.Request) credential {
	read, write := t.Of(system)
	switch {
	case bears(r, write):
		return writeCredential
	case bears(r, read):
		return readCredential
	}
	return noCredential
}

// bears compares in constant time, whatever the lengths.
func bears(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
