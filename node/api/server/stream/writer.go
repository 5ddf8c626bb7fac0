package stream

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"gridnode/node/api"
)

// wantsEvents reports whether a request asks for events and not for lines.
func wantsEvents(r *http.Request) bool {
	for kind := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, _, err := mime.ParseMediaType(kind); err == nil && media == api.MediaEvents {
			return true
		}
	}
	return false
}

// Writer writes jobs as lines, or as events that browsers know (server-sent events, of the
// HTML standard).
type Writer struct {
	w       http.ResponseWriter
	events  bool
	begun   bool
	encoder *json.Encoder
	err     error // of the first write that failed
}

// NewWriter returns what writes the answer to a request, and the place from which it is to go on;
// empty: from the beginning.
func NewWriter(w http.ResponseWriter, r *http.Request) (out *Writer, place string) {
	out = &Writer{w: w, events: wantsEvents(r)}
	if out.events {
		place = r.Header.Get("Last-Event-ID")
	}
	return out, place
}

// Begin writes what comes before jobs: that there is a gap, unless it is empty.
func (s *Writer) Begin(gap string) error {
	if !s.begun {
		s.begun = true
		s.encoder = json.NewEncoder(s.w)
		s.encoder.SetEscapeHTML(false)
		media := api.MediaLines
		if s.events {
			media = api.MediaEvents
			s.w.Header().Set("Cache-Control", "no-store")
		}
		s.w.Header().Set("Content-Type", media)
	}
	if gap == "" || gap == GapBegin {
		return s.err
	}
	return s.event(api.EventGap, api.Gap{Reason: gap})
}

// Job writes one job.
func (s *Writer) Job(j *api.Job) error { return s.event(api.EventJob, j) }

// event writes a value: of events that are no jobs only those who asked for events are told.
func (s *Writer) event(kind string, v any) error {
	switch {
	case !s.events && kind != api.EventJob:
		return s.err
	case s.events:
		s.text("event: " + kind + "\ndata: ")
	}
	if s.err == nil {
		s.err = s.encoder.Encode(v)
	}
	if s.events {
		s.text("\n")
	}
	return s.err
}

// Now says that all was told up to a place.
func (s *Writer) Now(id string) {
	if s.events {
		s.text("event: " + api.EventNow + "\nid: " + id + "\ndata: {}\n\n")
	}
}

// Beat says that the stream is still there.
func (s *Writer) Beat() {
	if s.events {
		s.text(": nothing has changed\n\n")
	}
}

func (s *Writer) text(text string) {
	if s.err == nil {
		_, s.err = s.w.Write([]byte(text))
	}
}

// Flush sends what was written.
func (s *Writer) Flush() error {
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}

// Failed returns the error that is to be the answer: none if one has begun, as that it ends says
// enough.
func (s *Writer) Failed(err error) error {
	if s.begun {
		return nil
	}
	return err
}
