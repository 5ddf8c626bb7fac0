package api

import "context"

// PageReply answers POST /v1/pages.
type PageReply struct {
	URL     string  `json:"url"` // for the browser of who asks: it acts with his role
	Expires Instant `json:"expires"`
}

// OpenPage returns the address of a page that acts for who asks.
func (c *Client) OpenPage(ctx context.Context) (*PageReply, error) {
	return post[PageReply](ctx, c, "/v1/pages", struct{}{})
}
