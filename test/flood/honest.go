package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/member"
)

const (
	probePause = 10 * time.Millisecond // between two negotiations of the honest peer
	probeMax   = 5 * time.Second       // for a reply; then the negotiation is lost
)

// probe is an honest peer that negotiates, one time after the other.
type probe struct {
	t       *talker
	request uint64
	stream  network.Stream

	mu      sync.Mutex
	replies map[uint64]chan *market.Reply
}

func newProbe(ctx context.Context, to *daemon, home *member.Household) (*probe, error) {
	info, err := peer.AddrInfoFromString(to.addr)
	if err != nil {
		return nil, err
	}
	t, err := newTalker("127.0.0.1", *info, func(public []byte) ([]byte, error) { return certify(home, public, "probe") })
	if err != nil {
		return nil, err
	}
	p := &probe{t: t, request: uint64(time.Now().UnixNano()), replies: make(map[uint64]chan *market.Reply)}
	t.host.SetStreamHandler(protocol.ID(market.Protocol.ID), p.listen)
	return p, t.connect(ctx)
}

// listen takes replies.
func (p *probe) listen(s network.Stream) {
	defer s.Reset()
	r := bufio.NewReader(s)
	for {
		frame, err := wire.ReadFrame(r)
		if err != nil {
			return
		}
		m, err := market.Protocol.Decode(grid.SiteID(p.t.to.ID.String()), frame)
		if err != nil {
			return
		}
		if reply, ok := m.(*market.Reply); ok {
			p.mu.Lock()
			if c := p.replies[reply.Request]; c != nil {
				c <- reply
			}
			p.mu.Unlock()
		}
	}
}

// negotiate asks once, gives the guarantee back, and returns how long the reply took.
func (p *probe) negotiate(ctx context.Context) (time.Duration, error) {
	p.request++
	c := make(chan *market.Reply, 1)
	p.mu.Lock()
	p.replies[p.request] = c
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.replies, p.request)
		p.mu.Unlock()
	}()
	ask := negotiation(rand.Uint64(), p.request)
	began := time.Now()
	if err := p.say(ctx, ask); err != nil {
		return 0, err
	}
	select {
	case reply := <-c:
		took := time.Since(began)
		if reply.Refusal == market.Granted {
			return took, p.say(ctx, &market.Cancel{Task: ask.Task, Hold: reply.Hold, Cause: "a probe"})
		}
		return took, nil
	case <-time.After(probeMax):
		return 0, fmt.Errorf("no reply within %v", probeMax)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (p *probe) say(ctx context.Context, m wire.Message) error {
	all, err := frames(1, func(int) wire.Message { return m })
	if err != nil {
		return err
	}
	if p.stream == nil {
		if p.stream, err = p.t.open(ctx, market.Protocol.ID); err != nil {
			return err
		}
	}
	if err := p.t.write(p.stream, all); err != nil {
		p.stream = nil
		return err
	}
	return nil
}

// sample is what honest peers saw for a while.
type sample struct {
	times []time.Duration
	lost  int
}

// at returns the time that so many of a hundred stayed within.
func (s *sample) at(percent int) time.Duration {
	if len(s.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.times))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// watch negotiates until ctx ends.
func (p *probe) watch(ctx context.Context) (s sample) {
	for ctx.Err() == nil {
		took, err := p.negotiate(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.lost++
		default:
			s.times = append(s.times, took)
		}
		time.Sleep(probePause)
	}
	return s
}

// jobs has a site run jobs of another, one after the other, until ctx ends.
func jobs(ctx context.Context, program string, home, at *daemon) (s sample) {
	for ctx.Err() == nil {
		began := time.Now()
		cmd := home.run(context.Background(), program, "submit", "--site", at.id, "-W", "--", "true")
		if err := runWithin(cmd, 30*time.Second); err != nil {
			s.lost++
			continue
		}
		s.times = append(s.times, time.Since(began))
	}
	return s
}

func runWithin(cmd *exec.Cmd, most time.Duration) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	t := time.AfterFunc(most, func() { _ = cmd.Process.Kill() })
	defer t.Stop()
	return cmd.Wait()
}
