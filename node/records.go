package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/libp2p/go-libp2p/core/network"

	"gridnode/grid"
	"gridnode/node/logging"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/store"
	"gridnode/node/witness"
)

// openStore opens what the node keeps its records in; nil if it keeps none.
func (h *Host) openStore() (*store.Store, error) {
	if h.cfg.Home == "" {
		return nil, nil
	}
	if err := h.files.Make(); err != nil {
		return nil, err
	}
	options := h.cfg.Store
	options.Site, options.Federation, options.Records = string(h.id), h.cfg.Federation, site.RecordsVersion
	log := h.log.With(logging.PartKey, "store")
	options.Log = func(format string, args ...any) { log.Warn(fmt.Sprintf(format, args...)) }
	return store.Open(filepath.Join(h.cfg.Home, "store"), options)
}

// StoreStats returns what the store has done so far; false if nothing is kept.
func (h *Host) StoreStats() (store.Stats, bool) {
	if h.loop.store == nil {
		return store.Stats{}, false
	}
	return h.loop.store.Stats(), true
}

// Snapshot returns every record as it is now, for a backup.
func (h *Host) Snapshot(ctx context.Context) (n *store.Snapshot, err error) {
	if h.loop.store == nil {
		return nil, errors.New("this node keeps nothing")
	}
	err = h.Do(ctx, func(*site.Site) { n = h.loop.store.Snapshot() }) // only the loop commits
	return n, err
}

// Room returns an error while the disk has no room for further jobs.
func (h *Host) Room() error {
	if h.loop.store == nil {
		return nil
	}
	return h.loop.store.Space()
}

// Names in the home of a node.
const (
	peersFile   = "peers"
	witnessFile = "witness.json"
)

// newTeller returns what has others remember how far the store is; nil where the home is
// nobody's to bring back.
func newTeller(h *Host) *witness.Teller {
	if h.loop.store == nil || h.cfg.Memory != nil {
		return nil
	}
	book, err := witness.OpenBook(filepath.Join(h.cfg.Home, witnessFile))
	if err != nil {
		h.log.Warn(err.Error())
	}
	return witness.New(witness.Config{
		Key: h.cfg.Key, Self: h.id, Federation: h.cfg.Federation, Book: book, Log: h.log.With(logging.PartKey, "witness"),
		Batch: func() uint64 { return h.loop.store.Sequence() },
		Peers: func() []grid.SiteID { return p2p.Members(h.net) },
		Open: func(ctx context.Context, to grid.SiteID) (witness.Stream, error) {
			return h.net.Open(ctx, to, witness.TellProtocol)
		},
		Call: func(ctx context.Context, to grid.SiteID, talk func(witness.Stream) error) error {
			return p2p.Call(ctx, h.cfg.Key, addressesOf(&h.cfg, to), witness.AskProtocol, func(s network.Stream) error { return talk(s) })
		},
	})
}

// addressesOf returns where a site was met.
func addressesOf(c *HostConfig, site grid.SiteID) (addresses []string) {
	text, _ := os.ReadFile(filepath.Join(c.Home, peersFile)) // those of the settings are left
	for _, address := range append(strings.Fields(string(text)), c.Join...) {
		if strings.HasSuffix(address, "/p2p/"+string(site)) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// testify has others remember how far the store is, until the host stops, which it does if
// they show that it is an older copy.
func testify(h *Host) {
	h.net.Handle(witness.AskProtocol, func(from grid.SiteID, s network.Stream) error { return h.witness.ServeAsk(from, s) })
	h.net.Handle(witness.TellProtocol, func(from grid.SiteID, s network.Stream) error { return h.witness.ServeTell(from, s) })
	h.wg.Go(func() {
		if err := h.witness.Run(h.ctx); err != nil {
			h.inbox.put(&halt{err})
		}
	})
}
