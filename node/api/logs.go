package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HeaderOutput is the header of an output that says where it begins: the number of the job's
// execution, a dash, and how many bytes of that come before. So much farther the parameter from
// goes on.
const HeaderOutput = "Gridnode-Output"

// TrailerError is the trailer that says why a stream of output ended early: a code
// of Error, a blank, and a message.
const TrailerError = "Gridnode-Error"

// Logs copies output of a job to w; query takes the parameters of GET /v1/jobs/{id}/logs. If it
// follows the job, a connection that breaks is made again, for WatchPatience, and the output goes
// on where it was. It fails if the job was started again meanwhile: the output of that is another.
func (c *Client) Logs(ctx context.Context, id string, query url.Values, w io.Writer) error {
	o := output{client: c, id: id, query: query, to: w}
	patience := WatchPatience
	if query.Get("follow") != "true" {
		patience = 0
	}
	return persist(ctx, patience, false, func() (bool, error) { return o.once(ctx) })
}

// output is an output that is copied over one connection or several.
type output struct {
	client *Client
	id     string
	query  url.Values
	to     io.Writer
	epoch  string // of the execution; empty: nothing has come
	offset int64  // of that, behind what has come
	place  string // both, as the daemon takes it
}

// once copies while a connection lasts. The daemon was there if output has come, or nothing has for
// a while.
func (o *output) once(ctx context.Context) (there bool, err error) {
	query := o.query
	if o.place != "" {
		query = url.Values{"follow": {"true"}, "stream": o.query["stream"], "from": {o.place}}
	}
	begun := time.Now()
	response, err := o.client.do(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(o.id)+"/logs?"+query.Encode(), nil)
	if err != nil { // an answer begins with the first byte, for which a job may take long
		var dialled *net.OpError
		missed := errors.As(err, &dialled) && dialled.Op == "dial"
		return !missed && time.Since(begun) > retryMost, err
	}
	defer response.Body.Close()
	before := o.place
	err = o.copy(ctx, response)
	return o.place != before || time.Since(begun) > retryMost, err
}

// copy writes what an answer brings.
func (o *output) copy(ctx context.Context, response *http.Response) (err error) {
	if epoch, offset, found := strings.Cut(response.Header.Get(HeaderOutput), "-"); found {
		if o.offset, err = strconv.ParseInt(offset, 10, 64); err != nil {
			return fmt.Errorf("%s: %w", HeaderOutput, err)
		}
		o.epoch = epoch
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(buffer)
		if _, err := o.to.Write(buffer[:n]); err != nil {
			return err
		}
		if o.offset += int64(n); o.epoch != "" {
			o.place = o.epoch + "-" + strconv.FormatInt(o.offset, 10)
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return broken(ctx, err)
		default:
			return cutShort(response)
		}
	}
}
