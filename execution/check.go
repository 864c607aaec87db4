package execution

import (
	"context"
	"net/url"

	"countersign/execution/api"
)

// Check asks the console, once, whether it takes the client's key. The error has
// the code unauthorized when it does not; of any other the key may be good.
func (c *Client) Check(ctx context.Context) error {
	r := get("tools")
	r.query = url.Values{"limit": {"1"}}
	if problem := c.try(ctx, r, nil, "", &api.List[api.Tool]{}); problem != nil {
		return problem
	}
	return nil
}
