package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"gridnode/node/sandbox/cgroup"
)

// Means is what a machine has to hold guests with. An error says why it lacks a thing.
type Means struct {
	Program      string // bwrap
	NoBubblewrap error

	ABI        int // version of Landlock, 0 for none
	NoLandlock error

	Groups   *cgroup.Place // nil for none
	NoGroups error

	User uint32 // first of the accounts that guests run as; 0: this process's own, as it is not root
}

// guests is the first number of the accounts that guests of a daemon of root's run as,
// chosen where by convention nobody has accounts. They need no entry anywhere.
const guests = 0x7000_0000

// Find looks at this machine: both kinds of walls are put up around a program that does
// nothing. It takes some ten milliseconds.
func Find() *Means {
	m := &Means{ABI: landlockVersion()}
	if os.Geteuid() == 0 {
		m.User = guests
	}
	m.Groups, m.NoGroups = cgroup.Find()
	for _, path := range programs {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			m.Program = path
			break
		}
	}
	if m.Program == "" {
		m.NoBubblewrap = errors.New("bubblewrap is not installed: install the package bubblewrap")
	} else if err := m.try(Bubblewrap); err != nil {
		m.NoBubblewrap = fmt.Errorf("%s does not work here: %w", m.Program, err)
	}
	switch {
	case m.ABI == 0:
		m.NoLandlock = errors.New("this kernel has no Landlock, or it is switched off")
	case m.User != 0 && m.ABI < abiTruncate:
		m.NoLandlock = fmt.Errorf("this kernel's Landlock is of version %d, and %d is needed", m.ABI, abiTruncate)
	case m.User == 0 && m.ABI < abiScoped:
		m.NoLandlock = fmt.Errorf("this kernel's Landlock is of version %d; %d is needed for a daemon that is not root, as before signals are let through", m.ABI, abiScoped)
	default:
		if err := m.try(Landlock); err != nil {
			m.NoLandlock = fmt.Errorf("landlock does not work here: %w", err)
		}
	}
	return m
}

// nothing is a program that ends at once, as every system has it.
const nothing = "/bin/true"

// tryMax is how long the attempt may take on a busy machine.
const tryMax = 10 * time.Second

// try starts a program that does nothing inside walls.
func (m *Means) try(kind Kind) error {
	dir, err := os.MkdirTemp("", "gridnode-try")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	l := &Launcher{}
	defer l.Close()
	fd := int(null.Fd())
	r, err := l.Start(m.plan(kind), &Process{Path: nothing, Args: []string{nothing}, Dir: dir, Files: [3]int{fd, fd, int(write.Fd())}})
	write.Close()
	if err != nil {
		return err
	}
	defer r.Release()
	late := time.AfterFunc(tryMax, func() { _ = syscall.Kill(-r.PID, syscall.SIGKILL) })
	defer late.Stop()
	var status syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(r.PID, &status, 0, nil)
	}
	if err != nil || status == 0 {
		return err
	}
	words := make([]byte, 256)
	n, _ := read.Read(words) // nothing: it said nothing
	return fmt.Errorf("exit status %d: %s", status.ExitStatus(), words[:n])
}

// plan returns one that allows the least.
func (m *Means) plan(kind Kind) *Plan {
	return &Plan{Kind: kind, Program: m.Program, ABI: m.ABI, User: m.User}
}

// Walls returns the kind of walls for those that are wanted, or why there are none.
func (m *Means) Walls(want Kind) (Kind, error) {
	bubblewrap := want == Auto || want == Bubblewrap
	landlock := want == Auto || want == Landlock
	switch {
	case bubblewrap && m.NoBubblewrap == nil:
		return Bubblewrap, nil
	case landlock && m.NoLandlock == nil:
		return Landlock, nil
	case bubblewrap && landlock:
		return None, fmt.Errorf("no sandbox: %w; %w", m.NoBubblewrap, m.NoLandlock)
	case bubblewrap:
		return None, fmt.Errorf("no sandbox: %w", m.NoBubblewrap)
	case landlock:
		return None, fmt.Errorf("no sandbox: %w", m.NoLandlock)
	}
	return None, nil
}

// ErrPorts is wrapped by Plan's error for a job that may reach some ports only, where that
// cannot be watched.
var ErrPorts = errors.New("this kernel cannot open single ports to a sandbox")

// Plan returns how to run a job by a rule, inside walls of the kind that is wanted. It
// never has fewer walls than the rule says: then there is an error. m may be nil for a rule
// without walls.
func (m *Means) Plan(want Kind, rule *Rule) (*Plan, error) {
	p := &Plan{Kind: None, Limits: rule.Limits}
	if !rule.Walls {
		return p, nil
	}
	kind, err := m.Walls(want)
	if err == nil && kind == None {
		err = errors.New("no sandbox: it is switched off")
	}
	if err != nil {
		return nil, err
	}
	p = m.plan(kind)
	p.Limits, p.Read, p.Devices = rule.Limits, rule.Read, rule.Devices
	if p.Kept = rule.Kept && p.HasFolder(); p.Kept {
		p.Limits.Disk = p.disk() // which is looked after: a disk is without bounds, too
	}
	if p.HasFolder() && !p.Kept && p.Limits.Memory > 0 {
		p.Limits.Memory += p.disk() // its files are in memory
	}
	switch {
	case rule.Network:
		p.Network = true
	case len(rule.Ports) > 0 && m.ABI < abiTCP && kind != None:
		return nil, fmt.Errorf("%w: it has Landlock of version %d, and %d is needed", ErrPorts, m.ABI, abiTCP)
	default:
		p.Ports = rule.Ports
	}
	return p, nil
}
