package sandbox

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// catalogRoutes is the catalogue: products, who may set prices, prices, and the
// notices that announce them.
func (s *Sandbox) catalogRoutes() []route {
	get, post := http.MethodGet, http.MethodPost
	return append([]route{
		{system: Catalog, method: get, path: "/health", handle: s.health},
		{system: Catalog, method: get, path: "/products", handle: s.listProducts},
		{system: Catalog, method: get, path: "/products/{product_id}", object: "product_id", handle: s.getProduct},
		{system: Catalog, method: get, path: "/people/{person_id}/may_set_price", object: "product_id", handle: s.maySetPrice},
		{system: Catalog, method: get, path: "/products/{product_id}/notices", object: "product_id", handle: s.getNotices},
		{system: Catalog, method: post, path: "/products/{product_id}/notices", object: "product_id", write: true, handle: s.notifyPrice},
		{system: Catalog, method: post, path: "/products/{product_id}/price", object: "product_id", write: true, handle: s.setPrice},
	}, s.operationRoutes(Catalog, "catalog_effects", words{undecided: "NOT_FOUND", working: "IN_PROGRESS"})...)
}

// product is a product as it is served. Its ETag is its version.
type product struct {
	ID        string    `json:"product_id"`
	Name      string    `json:"name"`
	Price     cents     `json:"price"`
	Currency  string    `json:"currency"`
	PriceList string    `json:"price_list"`
	Status    string    `json:"status"`
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
}

const productColumns = `id, name, price_cents, currency, price_list, status, version, updated_at`

func (p *product) scan(r row) error {
	return r.Scan(&p.ID, &p.Name, &p.Price, &p.Currency, &p.PriceList, &p.Status, &p.Version, &p.UpdatedAt)
}

// health answers without looking at any object, for probes.
func (s *Sandbox) health(ctx context.Context, _ *call) (answer, error) {
	if err := s.db.PingContext(ctx); err != nil {
		return answer{}, fmt.Errorf("reaching the database: %w", err)
	}
	return say(map[string]string{"status": "ok"}, 0)
}

func unknownProduct(id string) answer {
	return refuse(http.StatusNotFound, "product-not-found", fmt.Sprintf("There is no product %q.", id))
}

func (s *Sandbox) getProduct(ctx context.Context, c *call) (answer, error) {
	var p product
	err := p.scan(s.db.QueryRowContext(ctx, `SELECT `+productColumns+` FROM sandbox.products WHERE id = $1`, c.object))
	if errors.Is(err, sql.ErrNoRows) {
		return unknownProduct(c.object), nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("reading a product: %w", err)
	}
	return say(p, p.Version)
}

func (s *Sandbox) listProducts(ctx context.Context, c *call) (answer, error) {
	return byID[product]{what: "products", columns: productColumns, table: "products",
		scan: (*product).scan, id: func(p product) string { return p.ID }}.page(ctx, s.db, c)
}

// maySetPrice says whether a person may set prices now.
func (s *Sandbox) maySetPrice(ctx context.Context, c *call) (answer, error) {
	person := c.PathValue("person_id")
	if !clean(person) {
		return unclean(), nil
	}
	allowed, err := maySet(ctx, s.db, person)
	if err != nil {
		return answer{}, err
	}
	why := "may set prices"
	if !allowed {
		why = "is not on the list of people who may set prices"
	}
	return say(struct {
		Allowed bool   `json:"allowed"`
		Actor   string `json:"actor"`
		Product string `json:"product_id"`
		Reason  string `json:"reason"`
	}{allowed, person, c.object, why}, 0)
}

func maySet(ctx context.Context, q querier, actor string) (bool, error) {
	var allowed bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sandbox.people WHERE id = $1 AND may_set_price)`, actor).Scan(&allowed)
	if err != nil {
		return false, fmt.Errorf("reading a permission: %w", err)
	}
	return allowed, nil
}

// strictJSON reads exactly one object of exactly these fields.
func strictJSON(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// ifMatch reads the version in an If-Match header, quoted or bare; 0: none.
func (c *call) ifMatch() (int64, *answer) {
	text := strings.Trim(c.Header.Get("If-Match"), `"`)
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 1 {
		refusal := refuse(http.StatusBadRequest, "malformed", `If-Match is one version, such as "8".`)
		return 0, &refusal
	}
	return version, nil
}

// priceRequest is a price change whose form is right.
type priceRequest struct {
	ProductID string
	New       cents
	Version   int64 // 0: whatever version
}

func readPriceRequest(c *call) (priceRequest, *answer) {
	var body struct {
		ProductID string          `json:"product_id"`
		NewPrice  json.RawMessage `json:"new_price"`
	}
	if refusal := c.required(); refusal != nil {
		return priceRequest{}, refusal
	}
	version, refusal := c.ifMatch()
	if refusal != nil {
		return priceRequest{}, refusal
	}
	bad := func(detail string) (priceRequest, *answer) {
		a := refuse(http.StatusBadRequest, "malformed", detail)
		return priceRequest{}, &a
	}
	if err := strictJSON(c.body, &body); err != nil {
		return bad("The body is {product_id, new_price}: " + err.Error())
	}
	if body.ProductID != c.object {
		return bad("product_id differs from the one in the path.")
	}
	price, err := parseCents(body.NewPrice)
	if err != nil {
		return bad("new_price: " + err.Error())
	}
	return priceRequest{body.ProductID, price, version}, nil
}

// setPrice changes a price if the product is still at the version in If-Match.
func (s *Sandbox) setPrice(ctx context.Context, c *call) (answer, error) {
	req, refusal := readPriceRequest(c)
	if refusal != nil {
		return *refusal, nil
	}
	if req.Version == 0 {
		return refuse(http.StatusPreconditionRequired, "precondition-required", "Send If-Match with the version you looked at."), nil
	}
	bound := fingerprint("set_price", req.ProductID, int64(req.New), c.actor)
	return s.once(ctx, c, "set_price", bound, func(ctx context.Context, tx *sql.Tx) (answer, error) {
		return applyPrice(ctx, tx, c, req)
	})
}

func applyPrice(ctx context.Context, tx *sql.Tx, c *call, req priceRequest) (answer, error) {
	if c.actor != "" {
		allowed, err := maySet(ctx, tx, c.actor)
		if err != nil {
			return answer{}, err
		}
		if !allowed {
			return refuse(http.StatusUnprocessableEntity, "actor-not-allowed", "This person may not set prices."), nil
		}
	}
	var p product
	err := p.scan(tx.QueryRowContext(ctx, `SELECT `+productColumns+` FROM sandbox.products WHERE id = $1 FOR UPDATE`, req.ProductID))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return unknownProduct(req.ProductID), nil
	case err != nil:
		return answer{}, fmt.Errorf("reading a product: %w", err)
	case p.Status == "discontinued":
		return refuse(http.StatusUnprocessableEntity, "product-discontinued", "A discontinued product keeps its price."), nil
	case p.Version != req.Version && !c.unkeyed:
		return moved("product", p.Version), nil
	}
	old := p.Price
	err = p.scan(tx.QueryRowContext(ctx, `
		UPDATE sandbox.products SET price_cents = $2, version = version + 1, updated_at = clock_timestamp()
		 WHERE id = $1 RETURNING `+productColumns, p.ID, int64(req.New)))
	if err != nil {
		return answer{}, fmt.Errorf("changing a price: %w", err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO sandbox.price_changes (key, product_id, old_cents, new_cents, version, actor)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''))`, c.key, p.ID, int64(old), int64(p.Price), p.Version, c.actor)
	if err != nil {
		return answer{}, fmt.Errorf("writing the history of a price: %w", err)
	}
	return say(struct {
		Status    string    `json:"status"`
		Operation string    `json:"operation_id"`
		ProductID string    `json:"product_id"`
		OldPrice  cents     `json:"old_price"`
		NewPrice  cents     `json:"new_price"`
		Currency  string    `json:"currency"`
		Version   int64     `json:"version"`
		AppliedAt time.Time `json:"applied_at"`
	}{succeeded, c.key, p.ID, old, p.Price, p.Currency, p.Version, p.UpdatedAt}, p.Version)
}
