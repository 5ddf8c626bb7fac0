package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// task is what one task knows of the job.
type task struct {
	rank   int
	peers  []string // addresses by rank, this task's own among them
	sites  []string // by rank
	secret string   // of this job: who knows it may have commands run in its tasks
}

// secretMin is the least length of a secret, in bytes.
const secretMin = 16

// taskOf reads it from an environment.
func taskOf(env func(string) string) (*task, error) {
	if env("GRIDNODE_PEERS") == "" {
		return nil, errors.New("GRIDNODE_PEERS is not set: this is no task of gridnode submit --components or --coalloc")
	}
	t := &task{peers: strings.Split(env("GRIDNODE_PEERS"), ","), sites: strings.Split(env("GRIDNODE_PEER_SITES"), ","), secret: env("MPI_SECRET")}
	rank, err := strconv.Atoi(env("GRIDNODE_RANK"))
	switch {
	case err != nil || rank < 0 || rank >= len(t.peers):
		return nil, fmt.Errorf("GRIDNODE_RANK=%q: want 0 to %d, as GRIDNODE_PEERS has %d addresses", env("GRIDNODE_RANK"), len(t.peers)-1, len(t.peers))
	case len(t.sites) != len(t.peers):
		return nil, fmt.Errorf("GRIDNODE_PEER_SITES has %d sites, GRIDNODE_PEERS %d addresses", len(t.sites), len(t.peers))
	case len(t.secret) < secretMin:
		return nil, fmt.Errorf("MPI_SECRET has %d bytes, want at least %d: submit with --env MPI_SECRET=$(openssl rand -hex 16)", len(t.secret), secretMin)
	}
	t.rank = rank
	return t, nil
}
