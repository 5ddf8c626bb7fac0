package api

import "context"

// DrainRequest has a site take no new work, or take it again.
type DrainRequest struct {
	Undo bool `json:"undo,omitempty"`
}

// Drain is what a site has still that it was given before.
type Drain struct {
	Draining bool `json:"draining"` // it takes no new work
	Running  int  `json:"running"`  // jobs of its users that run, here or elsewhere
	Waiting  int  `json:"waiting"`  // jobs of its users that do not run yet
	Guests   int  `json:"guests"`   // jobs of other sites
	Leases   int  `json:"leases"`   // processors lent and borrowed, in leases
}

// Empty reports whether nothing is left that would miss the daemon.
func (d *Drain) Empty() bool { return d.Running+d.Waiting+d.Guests+d.Leases == 0 }

// Drain has the site take no new work, or take it again.
func (c *Client) Drain(ctx context.Context, undo bool) (*Drain, error) {
	return post[Drain](ctx, c, "/v1/drain", DrainRequest{undo})
}

// Drained returns what the site has still.
func (c *Client) Drained(ctx context.Context) (*Drain, error) {
	return get[Drain](ctx, c, "/v1/drain")
}
