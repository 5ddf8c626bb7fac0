package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Kinds of streams.
const (
	MediaLines  = "application/x-ndjson" // one JSON value a line
	MediaEvents = "text/event-stream"    // server-sent events, as the HTML standard defines them
)

// Events of GET /v1/watch.
const (
	EventJob = "job" // its data is a JOB
	EventGap = "gap" // its data is a Gap: what has changed meanwhile is not known, so all jobs follow
	EventNow = "now" // everything up to here was told; the event's ID is the place to go on from
)

// Gap says why a stream cannot go on where it was.
type Gap struct {
	Reason string `json:"reason"` // restarted or forgotten
}

// Reasons of gaps.
const (
	GapOther     = "restarted" // the place is of a daemon that has ended since, or of another one
	GapForgotten = "forgotten" // so much has changed that it is remembered no more
)

// WatchPatience is how long Client.Watch tries to have a daemon back that went away: that of an
// upgrade is back sooner.
const WatchPatience = 15 * time.Second

// Watch calls see for every job of filter and then for each whenever it changes, until ctx ends
// or see returns an error, which it returns. A connection that breaks is made again, for
// WatchPatience, and the stream goes on where it was; after a gap see is called for all jobs
// again.
func (c *Client) Watch(ctx context.Context, filter url.Values, see func(Job) error) error {
	return (&Watch{Filter: filter, Patience: WatchPatience}).Follow(ctx, c, see)
}

// Watch is a stream of jobs that lasts longer than a connection.
type Watch struct {
	Filter   url.Values       // parameters of GET /v1/watch
	Place    string           // to go on from; empty: from all jobs as they are. Follow keeps it up to date.
	Patience time.Duration    // how long Follow tries to have the daemon back; 0: not at all
	Gap      func(why string) // told that all jobs follow, as what has changed is not known; may be nil
}

// Follow is Client.Watch for this stream. It may be called again, by one at a time.
func (s *Watch) Follow(ctx context.Context, c *Client, see func(Job) error) error {
	return persist(ctx, s.Patience, s.Place != "", func() (bool, error) {
		before := s.Place
		err := s.once(ctx, c, see)
		return s.Place != before, err
	})
}

// once follows the stream while its connection lasts.
func (s *Watch) once(ctx context.Context, c *Client, see func(Job) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/watch?"+s.Filter.Encode(), nil)
	if err != nil {
		return fmt.Errorf("local API: %w", err)
	}
	request.Header.Set("Accept", MediaEvents)
	if s.Place != "" {
		request.Header.Set("Last-Event-ID", s.Place)
	}
	response, err := c.send(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); ; {
		e, err := readEvent(lines)
		if err != nil {
			return broken(ctx, err)
		}
		if err := s.take(&e, see); err != nil {
			return err
		}
	}
}

// take does what an event says.
func (s *Watch) take(e *event, see func(Job) error) error {
	switch e.kind {
	case EventJob:
		var job Job
		if err := json.Unmarshal(e.data, &job); err != nil {
			return fmt.Errorf("GET /v1/watch: a job that is none: %w", err)
		}
		return see(job)
	case EventGap:
		var gap Gap
		if err := json.Unmarshal(e.data, &gap); err != nil {
			return fmt.Errorf("GET /v1/watch: a gap that is none: %w", err)
		}
		if s.Gap != nil {
			s.Gap(gap.Reason)
		}
	}
	if e.id != "" { // behind it all that came before was seen
		s.Place = e.id
	}
	return nil
}

// event is an event of a stream.
type event struct {
	kind, id string
	data     []byte
}

// readEvent reads an event. Fields that are not known and comments are passed over. What ends
// within one is none: an error.
func readEvent(from *bufio.Reader) (e event, err error) {
	for some := false; ; {
		line, err := from.ReadBytes('\n')
		if err != nil {
			if err == io.EOF && (some || len(line) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return e, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if some {
				return e, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		some = some || len(name) > 0
		switch string(name) {
		case "event":
			e.kind = string(value)
		case "id":
			e.id = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
}
