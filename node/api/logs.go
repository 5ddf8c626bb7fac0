package api

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	pause, away := retryLeast, time.Now()
	for {
		before, begun := o.place, time.Now()
		err := o.once(ctx)
		if o.place != before || time.Since(begun) > retryMost { // it was there until now
			o.been, pause, away = true, retryLeast, time.Now()
		}
		if query.Get("follow") != "true" || !again(err, o.been) || ctx.Err() != nil || time.Since(away)+pause > WatchPatience {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, retryMost)
	}
}

// output is an output that is copied over one connection or several.
type output struct {
	client *Client
	id     string
	query  url.Values
	to     io.Writer
	been   bool   // the daemon was there
	epoch  string // of the execution; empty: nothing has come
	offset int64  // of that, behind what has come
	place  string // both, as the daemon takes it
}

// once copies while a connection lasts.
func (o *output) once(ctx context.Context) error {
	query := o.query
	if o.place != "" {
		query = url.Values{"follow": {"true"}, "stream": o.query["stream"], "from": {o.place}}
	}
	response, err := o.client.do(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(o.id)+"/logs?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
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
