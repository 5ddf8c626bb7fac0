package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// segment is a network of its own: a bridge, and a namespace for each site. Nothing leads out of it.
// Its addresses have to look public: libp2p tries no others that are not this machine's.
type segment struct {
	name   string // of the namespaces, in front
	hosts  int
	delays bool // its packets take 10 ms
}

// sh runs programs, a line each.
func sh(ctx context.Context, lines string) error {
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.TrimSpace(line), err, out)
		}
	}
	return nil
}

func newSegment(ctx context.Context, name string) (*segment, error) {
	n := &segment{name: name}
	return n, sh(ctx, strings.ReplaceAll(`
		ip netns add N-wire
		ip -n N-wire link add bridge type bridge
		ip -n N-wire link set bridge up`, "N-", n.name+"-"))
}

func (n *segment) close() {
	for i := range n.hosts {
		_ = sh(context.Background(), "ip netns del "+n.host(i+1))
	}
	_ = sh(context.Background(), "ip netns del "+n.name+"-wire")
}

func (n *segment) host(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }

// add puts a site there, which hears 99 of a hundred packets.
func (n *segment) add(ctx context.Context, s *site) error {
	n.hosts++
	s.namespace, s.address = n.host(n.hosts), fmt.Sprintf("45.0.0.%d", n.hosts)
	if err := sh(ctx, strings.NewReplacer("HOST", s.namespace, "WIRE", n.name+"-wire", "PORT", fmt.Sprintf("port%d", n.hosts), "ADDRESS", s.address).Replace(`
		ip netns add HOST
		ip -n HOST link set lo up
		ip link add PORT netns WIRE type veth peer name outside netns HOST
		ip -n WIRE link set PORT master bridge up
		ip -n HOST addr add ADDRESS/24 dev outside
		ip -n HOST link set outside up
		ip netns exec HOST nft add table ip campaign
		ip netns exec HOST nft add chain ip campaign in { type filter hook input priority 0 ; }`)); err != nil {
		return err
	}
	// Not every kernel can delay packets.
	n.delays = sh(ctx, "ip netns exec "+s.namespace+" tc qdisc add dev outside root netem delay 10ms 3ms") == nil
	return s.lose(ctx, 1)
}

// lose has the site hear all but so many of a hundred packets, and everybody again.
func (s *site) lose(ctx context.Context, percent int) error {
	return sh(ctx, fmt.Sprintf(`
		ip netns exec %[1]s nft flush chain ip campaign in
		ip netns exec %[1]s nft add rule ip campaign in iif outside numgen random mod 100 < %[2]d drop`, s.namespace, percent))
}

// drop has a site hear nothing of another.
func drop(ctx context.Context, at, from *site) error {
	return sh(ctx, fmt.Sprintf("ip netns exec %s nft add rule ip campaign in ip saddr %s drop", at.namespace, from.address))
}

// partitions cuts connections between sites for some seconds, in both directions or one, or has them lose
// many packets.
func partitions(ctx context.Context, p *plan) (*outcome, error) {
	n, err := newSegment(ctx, filepath.Base(p.dir))
	defer n.close()
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, p, func(s *site) error { return n.add(ctx, s) })
	if err != nil {
		return nil, err
	}
	if n.delays {
		w.out.note("rounds with latency")
	}
	return w.round(ctx, w.part)
}

// part does so once, and has the network heal.
func (w *world) part(ctx context.Context) error {
	i := w.random.IntN(3)
	one, two, three := w.sites[i], w.sites[(i+1)%3], w.sites[(i+2)%3]
	var cuts [][2]*site
	what := ""
	loss := 0
	switch w.random.IntN(5) {
	case 0:
		what, cuts = "one way", [][2]*site{{one, two}}
	case 1:
		what, cuts = "two sites", [][2]*site{{one, two}, {two, one}}
	case 2:
		what, cuts = "one site from all", [][2]*site{{one, two}, {two, one}, {one, three}, {three, one}}
	case 3:
		what, cuts = "all from all", [][2]*site{{one, two}, {two, one}, {one, three}, {three, one}, {two, three}, {three, two}}
	case 4:
		what, loss = "many packets lost", 20+w.random.IntN(40)
	}
	w.out.note(what)
	for _, c := range cuts {
		if err := drop(ctx, c[0], c[1]); err != nil {
			return err
		}
	}
	if loss > 0 {
		if err := one.lose(ctx, loss); err != nil {
			return err
		}
	}
	span := 6 * time.Second
	if w.random.IntN(6) == 0 {
		span = 40 * time.Second // longer than a job's lease
	}
	pause(ctx, time.Duration(w.random.Float64()*float64(span)))
	for _, s := range w.sites {
		if err := s.lose(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}
