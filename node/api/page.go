package api

import "context"

// PageRequest is the body of POST /v1/pages.
type PageRequest struct {
	Site string `json:"site,omitempty"` // whose page it is, by name or ID; left out: this one's
}

// PageReply answers POST /v1/pages.
type PageReply struct {
	URL     string  `json:"url"` // for the browser of who asks: it acts with his role
	Expires Instant `json:"expires"`
}

// OpenPage returns the address of a page that acts for who asks; or of another site's page, if
// that is not empty, which he may look at.
func (c *Client) OpenPage(ctx context.Context, site string) (*PageReply, error) {
	return post[PageReply](ctx, c, "/v1/pages", PageRequest{site})
}
