package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"gridnode/node/console"
)

// Console looks into a job of the asker's: through its own terminal, or with request.Args by a
// command beside it. The caller closes what it returns; ctx bounds the whole of it.
func (c *Client) Console(ctx context.Context, id string, request *console.Request) (*console.Conn, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	verb := "attach"
	if len(request.Args) > 0 {
		verb = "exec"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/jobs/"+url.PathEscape(id)+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("local API: %w", err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", console.Protocol)
	response, err := c.send(r)
	if err != nil {
		return nil, err
	}
	stream, ok := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !ok {
		response.Body.Close()
		return nil, &Error{Code: CodeInternal, Message: "the daemon answered " + response.Status}
	}
	return console.New(stream), nil
}
