//go:build !client

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"gridnode/node/access"
	"gridnode/node/api/server"
	"gridnode/testnet/live"
)

// pageOfTestnet is how long a page of a network may be looked at.
const pageOfTestnet = 7 * 24 * time.Hour

// networkPage is the page of a network's first site, at a free port of this machine. Its
// jobs are counted, so nobody may submit others there, or change anything else.
type networkPage struct {
	server *server.Server
	keys   string // directory
	served chan error
}

// showPage opens it, and says on out where it is.
func showPage(out io.Writer, l *live.Live) (p *networkPage, err error) {
	p = &networkPage{served: make(chan error, 1)}
	if p.keys, err = os.MkdirTemp("", "gridnode-page"); err != nil {
		return nil, err
	}
	keys, err := access.OpenTokens(filepath.Join(p.keys, pagesFile))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.keys))
	}
	who, err := user.Current()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.keys))
	}
	key, _, err := keys.Create(time.Now(), who.Username, access.Admin, pageOfTestnet)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.keys))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.keys))
	}
	p.server = server.New(l.Hosts()[0], server.Config{
		Federation: live.Federation, Version: version, Pages: keys,
		ReadOnly: "this network replays a workload: it can be looked at, and nothing changed",
	})
	go func() { p.served <- p.server.ServePage(listener, "", nil) }()
	fmt.Fprintf(out, "the page of the first site is at http://%s/#key=%s\n", listener.Addr(), key)
	return p, nil
}

// Close ends the page.
func (p *networkPage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(p.server.Close(ctx), <-p.served, os.RemoveAll(p.keys))
}
