package visit

import (
	"errors"
	"net"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// exchange has a user ask, and returns what both ends say.
func exchange(t *testing.T, user string, open func(string) (*Ticket, error)) (ticket *Ticket, asked, served error) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	done := make(chan error, 1)
	go func() {
		done <- Serve(there, open)
		there.Close()
	}()
	ticket, asked = Ask(here, user)
	here.Close()
	return ticket, asked, <-done
}

func TestAsk(t *testing.T) {
	const page = "https://beta.example.org:7533/#key=gridnode_x-Y_1"
	var asker string
	give := func(url string, span grid.Time) func(string) (*Ticket, error) {
		return func(user string) (*Ticket, error) {
			asker = user
			return &Ticket{url, span}, nil
		}
	}
	ticket, asked, served := exchange(t, "ann", give(page, grid.Hour))
	if asked != nil || served != nil || *ticket != (Ticket{page, grid.Hour}) || asker != "ann" {
		t.Errorf("%+v for %q, %v, %v", ticket, asker, asked, served)
	}
	if _, asked, served = exchange(t, strings.Repeat("é", 40), give(page, grid.Hour)); asked != nil || served != nil || asker != strings.Repeat("é", 32) {
		t.Errorf("a long name came as %q, %v, %v", asker, asked, served)
	}
	if _, asked, served = exchange(t, strings.Repeat("x", 63)+"é", give(page, grid.Hour)); asked != nil || served != nil || asker != strings.Repeat("x", 63) {
		t.Errorf("a name that is cut came as %q, %v, %v", asker, asked, served)
	}
	if _, asked, _ = exchange(t, "ann", func(string) (*Ticket, error) { return nil, errors.New("no\x1b[2J") }); !errors.Is(asked, ErrRefused) || strings.Contains(asked.Error(), "\x1b") {
		t.Errorf("a refusal: %v", asked)
	}
}

// A browser goes, and a terminal prints, where the answer leads: nowhere but to a page.
func TestAddressesOfPages(t *testing.T) {
	for _, url := range []string{
		"", "http://beta/#key=x", "file:///etc/passwd#key=x", "javascript:alert(1)//#key=x", "https:///#key=x", "https://beta/", "https://beta/#x",
		"https://beta/other#key=x", "https://beta/?q#key=x", "https://ann@beta/#key=x", "https://beta/#key=\x1b[2J", "https://beta/#key=x y", "https://beta/#key=x'y",
		"https://beta/#key=" + strings.Repeat("x", urlMax), "-https://beta/#key=x",
	} {
		if _, asked, _ := exchange(t, "ann", func(string) (*Ticket, error) { return &Ticket{url, grid.Hour}, nil }); !errors.Is(asked, wire.ErrMalformed) {
			t.Errorf("%q: %v", url, asked)
		}
	}
	if _, asked, _ := exchange(t, "ann", func(string) (*Ticket, error) { return &Ticket{"https://beta/#key=x", -1}, nil }); !errors.Is(asked, wire.ErrMalformed) {
		t.Errorf("a span that is over: %v", asked)
	}
}

func TestMalformedRequests(t *testing.T) {
	for name, write := range map[string]func(net.Conn) error{
		"nobody": func(c net.Conn) error { return wire.WriteProto(c, &wirepb.VisitRequest{User: ""}) },
		"too long": func(c net.Conn) error {
			return wire.WriteProto(c, &wirepb.VisitRequest{User: strings.Repeat("x", userMax+1)})
		},
		"garbage": func(c net.Conn) error { return wire.WriteFrame(c, []byte{0xff, 0xff}) },
	} {
		here, there := net.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- Serve(there, func(string) (*Ticket, error) {
				t.Errorf("%s: a ticket is made", name)
				return nil, nil
			})
			there.Close()
		}()
		_ = write(here)
		if err := <-done; !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		here.Close()
	}
}
