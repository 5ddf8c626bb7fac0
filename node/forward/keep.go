package forward

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gridnode/grid"
	"gridnode/internal/atomicfile"
)

// Tasks outlive their node, and know each other's addresses from their start on. So a group is
// kept in a file, and the next node listens where this one did.

// claimMax is how long a group of an earlier node waits for somebody who knows of its job.
const claimMax = 10 * time.Minute

// keptMax bounds such a file.
const keptMax = 1 << 20

// keptGroup is a group in its file.
type keptGroup struct {
	Group
	Addresses []string
}

// path returns where a group is kept.
func (f *Forwarder) path(id ID) string {
	sum := sha256.Sum256(fmt.Append(nil, id.Home, "\x00", id.Task))
	return filepath.Join(f.dir, hex.EncodeToString(sum[:16])+".json")
}

// keep writes a group to its file.
func (f *Forwarder) keep(g *group) error {
	if f.dir == "" {
		return nil
	}
	text, err := json.Marshal(keptGroup{g.Group, g.addresses})
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err == nil {
		err = atomicfile.Write(f.path(g.ID), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the addresses of a job's tasks: %w", err)
	}
	return nil
}

// restore takes up the groups of an earlier node.
func (f *Forwarder) restore() {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			f.log.Warn("tasks of running jobs cannot connect to other sites anew", "error", err)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, entry := range entries {
		path := filepath.Join(f.dir, entry.Name())
		g, err := f.read(path)
		if err != nil {
			f.log.Warn("tasks of a running job cannot connect to other sites anew", "error", err)
			_ = os.Remove(path) // what is left is found again
			continue
		}
		f.enterGroup(g)
		f.unclaimed[g.ID] = true
	}
	if len(f.unclaimed) > 0 {
		f.late = time.AfterFunc(claimMax, f.removeUnclaimed)
	}
}

// read returns the group in a file, listening where its addresses say, but for those that somebody
// else has taken meanwhile. The caller holds f.mu.
func (f *Forwarder) read(path string) (*group, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > keptMax {
		return nil, fmt.Errorf("%s has %d bytes", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var k keptGroup
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := k.check(f.self); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(k.Addresses) != len(k.Sites) || f.path(k.ID) != path || f.groups[k.ID] != nil || len(f.groups) >= groupsMax {
		return nil, fmt.Errorf("%s is not what was kept", path)
	}
	g := newGroup(k.Group)
	g.addresses = k.Addresses
	g.listeners = make([]net.Listener, len(k.Sites))
	for rank, site := range k.Sites {
		if site == f.self {
			if _, text, err := net.SplitHostPort(k.Addresses[rank]); err == nil {
				if port, err := strconv.Atoi(text); err == nil {
					f.given[port] = true
					g.given = append(g.given, port)
				}
			}
			continue
		}
		l, err := net.Listen("tcp", k.Addresses[rank])
		if err != nil {
			f.log.Warn("tasks of a running job cannot connect to one elsewhere any more", "job", k.Task.Job, "rank", rank, "error", err)
			continue
		}
		g.listeners[rank] = l
	}
	return g, nil
}

// Claim says that tasks of these jobs are here, also where their homes are not known: what an
// earlier node kept of others is removed after a while.
func (f *Forwarder) Claim(tasks ...grid.TaskID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.unclaimed {
		if slices.Contains(tasks, id.Task) {
			delete(f.unclaimed, id)
		}
	}
}

func (f *Forwarder) removeUnclaimed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.unclaimed {
		f.remove(f.groups[id])
	}
}
