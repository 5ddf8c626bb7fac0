package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// Rule says what one job may do. It is all that whoever decides about jobs (the site:
// whose job it is, and its owner's rules for guests) tells who runs them.
type Rule struct {
	Walls   bool     // it runs inside walls, or not at all
	Network bool     // with walls: it may use the machine's network
	Ports   []uint16 // with walls and without Network: TCP ports it may connect to and listen at
	Read    []string // with walls: absolute paths that it may read besides the system
	Devices []string // with walls: device files that it may use besides those that do no harm; those that are not there are left out
	Kept    bool     // with walls: its folder is the directory that it is given, on disk, and outlives it
	Limits  Limits   // with or without walls
}

// Limits of everything that a task starts, together; 0: none.
type Limits struct {
	Memory     int64 `json:",omitempty"` // bytes; with walls what is in its folder counts, too
	Processors int64 `json:",omitempty"` // thousandths of one
	Processes  int64 `json:",omitempty"` // processes and threads
	Disk       int64 `json:",omitempty"` // bytes in its folder, and in any one file
	Files      int64 `json:",omitempty"` // open at a time, of each process
}

// Kind is what the walls are made of.
type Kind string

// Kinds of walls.
const (
	Auto       Kind = "auto"       // the best this machine has
	None       Kind = "none"       // no walls: only where every member is trusted
	Bubblewrap Kind = "bubblewrap" // a machine of its own
	Landlock   Kind = "landlock"   // Landlock and seccomp
)

// ParseKind reads a kind.
func ParseKind(v string) (Kind, error) {
	switch k := Kind(v); k {
	case Auto, None, Bubblewrap, Landlock:
		return k, nil
	}
	return Auto, fmt.Errorf("%q: want auto, bubblewrap, landlock or none", v)
}

// Plan is how one task is started. The zero value is a process without walls or limits.
type Plan struct {
	Kind    Kind     `json:",omitempty"` // None or Landlock or Bubblewrap
	Program string   `json:",omitempty"` // bwrap
	Network bool     `json:",omitempty"`
	Ports   []uint16 `json:",omitempty"`
	Read    []string `json:",omitempty"`
	Devices []string `json:",omitempty"`
	User    uint32   `json:",omitempty"` // first of the accounts that guests run as; 0: this process's own
	ABI     int      `json:",omitempty"` // of Landlock
	Kept    bool     `json:",omitempty"` // its folder is the directory that it is given
	Module  int64    `json:",omitempty"` // bytes of linear memory of the module that it runs; 0: it is no module
	Account *Account `json:",omitempty"` // without walls: whom it runs as; nil: this process's own account
	Limits  Limits
}

// Walled reports whether there are walls.
func (p *Plan) Walled() bool { return p != nil && (p.Kind == Bubblewrap || p.Kind == Landlock) }

// Folder is where a walled task of bubblewrap, or of root, has its files.
const Folder = "/tmp"

// HasFolder reports whether the task sees its files in Folder, which is in memory unless it is
// kept, rather than in the directory it was given.
func (p *Plan) HasFolder() bool {
	return p != nil && (p.Kind == Bubblewrap || p.Kind == Landlock && p.User != 0)
}

// system is what every task inside walls may read of the machine, if it is there, besides
// parts of /etc.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt"}

// Sees reports whether a task of this plan can see a path of the machine.
func (p *Plan) Sees(path string) bool {
	if !p.Walled() {
		return true
	}
	for _, dir := range slices.Concat(system, p.Read, []string{Folder}) {
		if within(path, dir) {
			return true
		}
	}
	return false
}

// within reports whether a path is a directory or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
