package shim

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
)

// Variables by which a task of a gang knows where the others are. The shim writes them anew where
// these addresses are those of another machine.
const (
	PeersEnv      = "GRIDNODE_PEERS"      // by rank, between commas
	RendezvousEnv = "GRIDNODE_RENDEZVOUS" // of rank 0
)

// Peers are the tasks of a gang, as one of them reaches them that runs on another machine than
// its daemon.
type Peers struct {
	Gang      string   // names it: its tasks on a node share what leads to the others
	Rank      int      // of the task itself, from 0
	Addresses []string // by rank: HOST:PORT on the daemon's machine; that of Rank the task listens at, here
}

// size is about how many bytes they take in a Spec; nil is allowed.
func (p *Peers) size() int {
	if p == nil {
		return 0
	}
	n := len(p.Gang)
	for _, a := range p.Addresses {
		n += len(a) + 4
	}
	return n
}

func (p *Peers) check() error {
	switch {
	case p == nil:
	case p.Gang == "" || len(p.Gang) > idMax:
		return fmt.Errorf("the name of its gang has %d bytes", len(p.Gang))
	case len(p.Addresses) > grid.PeersMax || p.Rank < 0 || p.Rank >= len(p.Addresses):
		return fmt.Errorf("rank %d of a gang of %d", p.Rank, len(p.Addresses))
	default:
		for _, a := range p.Addresses {
			if _, err := portOf(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// portOf returns the port of an address of this machine.
func portOf(address string) (uint16, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if ip := net.ParseIP(host); err != nil || port == 0 || ip == nil || !ip.IsLoopback() {
		return 0, errors.New("address " + strconv.Quote(address) + " of a task is not one of its own machine")
	}
	return uint16(port), nil
}

// at returns the spec of a task that reaches the others at these addresses: its variables say so,
// and its walls let it.
func (s *Spec) at(addresses []string) (*Spec, error) {
	moved := *s
	moved.Env = slices.Clone(s.Env)
	for i, setting := range moved.Env {
		switch name, _, _ := strings.Cut(setting, "="); name {
		case PeersEnv:
			moved.Env[i] = name + "=" + strings.Join(addresses, ",")
		case RendezvousEnv:
			moved.Env[i] = name + "=" + addresses[0]
		}
	}
	if s.Plan == nil || len(s.Plan.Ports) == 0 {
		return &moved, nil
	}
	plan := *s.Plan
	plan.Ports = nil
	for _, a := range addresses {
		port, err := portOf(a)
		if err != nil {
			return nil, err
		}
		plan.Ports = append(plan.Ports, port)
	}
	moved.Plan = &plan
	return &moved, nil
}
