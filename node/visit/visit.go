// Package visit is how somebody of one member's site comes to look at the page of another's:
// his daemon asks the other one over the network, where both have shown that they are members,
// and is told an address with a key.
package visit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// Protocol is that of streams: a request, and an answer.
const Protocol = "/gridnode/visit/1"

// TalkMax bounds the time of one exchange.
const TalkMax = 10 * time.Second

const (
	userMax = 64   // bytes of who wants to look
	urlMax  = 1024 // bytes of an address
)

// Ticket lets its bearer look at a page.
type Ticket struct {
	URL  string    // with the key behind its #
	Span grid.Time // for which it is good
}

// ErrRefused is wrapped by Ask's error if the other site does not want to.
var ErrRefused = errors.New("refused")

// Stream is a stream between two sites.
type Stream interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// Serve answers a request: open returns the ticket of a user of the asker's, or why there is
// none. The error wraps wire.ErrMalformed if it is no request.
func Serve(s Stream, open func(user string) (*Ticket, error)) error {
	_ = s.SetDeadline(time.Now().Add(TalkMax))
	var p wirepb.VisitRequest
	if err := wire.ReadProto(bufio.NewReaderSize(s, 128), &p); err != nil {
		return err
	}
	if p.User == "" || len(p.User) > userMax {
		return wire.Malformed("a visit of a user whose name has %d bytes", len(p.User))
	}
	answer := &wirepb.VisitAnswer{}
	if t, err := open(p.User); err != nil {
		answer.Refusal = err.Error()
	} else {
		answer.Url, answer.Span = t.URL, int64(t.Span)
	}
	return wire.WriteProto(s, answer)
}

// Ask asks for a ticket of a user.
func Ask(s Stream, user string) (*Ticket, error) {
	_ = s.SetDeadline(time.Now().Add(TalkMax))
	if err := wire.WriteProto(s, &wirepb.VisitRequest{User: strings.ToValidUTF8(user[:min(len(user), userMax)], "")}); err != nil {
		return nil, err
	}
	var p wirepb.VisitAnswer
	if err := wire.ReadProto(bufio.NewReaderSize(s, 1024), &p); err != nil {
		return nil, err
	}
	if p.Refusal != "" {
		return nil, fmt.Errorf("%w: %.200q", ErrRefused, p.Refusal)
	}
	return &Ticket{p.Url, grid.Time(p.Span)}, check(p.Url, grid.Time(p.Span))
}

// check returns an error for an address that is no page's: the asker's browser goes where it
// leads.
func check(text string, span grid.Time) error {
	bad := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '\\' || r == '`' }
	u, err := url.Parse(text)
	if err != nil || len(text) > urlMax || strings.ContainsFunc(text, bad) || u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.Path != "/" || u.RawQuery != "" || !strings.HasPrefix(u.Fragment, "key=") || span <= 0 {
		return wire.Malformed("%.80q is not the address of a page", text)
	}
	return nil
}
