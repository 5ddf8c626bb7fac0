package api

import (
	"context"
	"io"
	"net/http"
)

// Download writes what a call answers, whatever that is. After an error what was written is
// not all of it.
func (c *Client) Download(ctx context.Context, path string, to io.Writer) error {
	response, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(to, response.Body); err != nil {
		return broken(ctx, err)
	}
	return cutShort(response)
}
