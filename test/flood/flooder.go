package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// order is what the process that floods is told, on its standard input.
type order struct {
	Kind    string
	To      string   // multiaddr with /p2p/ID
	From    []string // an address for each flooder
	Seconds float64
	Root    []byte // seed of the federation's root key
	Socket  string // of the site, for other accounts of its machine
}

// outcome is what it prints, after an empty one when all are connected.
type outcome struct {
	IDs     []string
	Sent    int64
	Ended   int     // flooders whose connection the site has ended, and which it takes no more
	Seconds float64 // until the last of them
	Errors  []string
}

// flooders carries out an order: they start at the same time, and stop by themselves.
func flooders(in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return err
	}
	var flood *kind
	for i := range kinds {
		if kinds[i].name == o.Kind {
			flood = &kinds[i]
		}
	}
	if flood == nil {
		return fmt.Errorf("no flood %q", o.Kind)
	}
	to, err := peer.AddrInfoFromString(o.To)
	if err != nil {
		return err
	}
	home, err := household(o.Root)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var sent atomic.Int64
	result := outcome{IDs: []string{}, Errors: []string{}}
	var all []*talker
	for i, from := range o.From {
		if o.Kind == local {
			result.IDs = append(result.IDs, strconv.Itoa(firstUser+i))
			all = append(all, &talker{user: firstUser + i, socket: o.Socket})
			continue
		}
		t, err := newTalker(from, *to, func(public []byte) ([]byte, error) {
			return certify(home, public, fmt.Sprintf("flood%d-%d", os.Getpid(), i))
		})
		if err != nil {
			return err
		}
		defer t.host.Close()
		result.IDs = append(result.IDs, t.host.ID().String())
		if err := t.connect(context.Background()); err != nil {
			return fmt.Errorf("flooder %d: %w", i, err)
		}
		all = append(all, t)
	}
	if _, err := fmt.Fprintln(out, "{}"); err != nil { // ready
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(o.Seconds*float64(time.Second)))
	defer cancel()
	for _, t := range all {
		wg.Go(func() {
			began := time.Now()
			err := t.persist(ctx, flood, &sent)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				result.Ended++
				result.Seconds = max(result.Seconds, time.Since(began).Seconds())
				if len(result.Errors) < 3 {
					result.Errors = append(result.Errors, err.Error())
				}
			}
		})
	}
	wg.Wait()
	result.Sent = sent.Load()
	return json.NewEncoder(out).Encode(result)
}

// persist floods until ctx ends, and comes back when its connection is ended. The error
// says why it cannot any more.
func (t *talker) persist(ctx context.Context, flood *kind, sent *atomic.Int64) error {
	if t.socket != "" {
		return flood.flood(ctx, t, sent)
	}
	refused := 0
	for ctx.Err() == nil {
		err := flood.flood(ctx, t, sent)
		if ctx.Err() != nil {
			return nil
		}
		if t.connected() {
			time.Sleep(50 * time.Millisecond)
		}
		for !t.connected() || t.connect(ctx) != nil {
			if ctx.Err() != nil {
				return nil
			}
			if t.host.Network().ClosePeer(t.to.ID) == nil && t.connect(ctx) == nil {
				refused = 0
				break
			}
			if refused++; refused >= 5 {
				return fmt.Errorf("refused: %w", err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

// from returns the address that this talker connects from.
func (t *talker) from() net.IP {
	for _, c := range t.host.Network().ConnsToPeer(t.to.ID) {
		if ip, err := manet.ToIP(c.LocalMultiaddr()); err == nil {
			return ip
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

func tcpAddress(a multiaddr.Multiaddr) (string, error) {
	_, address, err := manet.DialArgs(a)
	return address, err
}
