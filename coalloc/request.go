package coalloc

import (
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Bounds of what a request may name.
const (
	ComponentsMax = 64      // of one job
	SplitsMax     = 16      // alternatives of one request
	ProcessorsMax = 1 << 24 // of one job, as of one site
	InputsMax     = 64      // input files of one request
	CCRMax        = 100_000 // thousandths: a hundred times as much communication as computation
)

// ErrRequest is wrapped by every error about a request as such: it could be met by
// no set of sites. The caller shows it to whoever made the request.
var ErrRequest = errors.New("co-allocation request")

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, args...))
}

// Component is the part of a job that runs at one site.
type Component struct {
	Processors int64       // at least 1
	Site       grid.SiteID // where it has to run; empty: anywhere
}

// Split is one way to divide a job into components. Its order is the job's: ranks
// are numbered in it.
type Split []Component

// Request says how a job may be divided over sites (KOALA, section II). It is one of
//
//   - fixed: Splits of which every component names its site;
//   - non-fixed: Splits of which at least one component does not;
//   - flexible: no Splits; Processors are divided as the policy likes, within
//     ComponentsMin, ComponentsMax and ComponentMin.
//
// Several Splits are alternatives in order of preference: the first that can be
// placed is taken. All have the same number of processors.
type Request struct {
	Processors int64   // of the whole job
	Splits     []Split // empty: flexible

	// Flexible only.
	ComponentsMin int   // fewest components; 0 and 1: a single one is fine
	ComponentsMax int   // most components; 0: as many as there are sites, but 64 at most
	ComponentMin  int64 // least processors of a component; 0 and 1: any
	Each          int64 // processors of a task, which are never divided; 0 and 1: one

	ClustersMax int // most sites to be combined; 0: no limit

	// CCR is the job's communication time over its computation time within one site,
	// in thousandths (section VI-C). 0: it does not communicate; negative: unknown.
	CCR int64

	// Application tells jobs apart of which one's run time says something of another's;
	// empty: of none.
	Application string

	Inputs []Input // what it reads, for Close-to-Files

	Policy *Policy // of its placement; nil: the queue's
}

// CCRUnknown is the CCR of a job about which nobody has said or measured anything.
const CCRUnknown = -1

// Input is a file that every component of a job needs.
type Input struct {
	Bytes   int64         // at least 0
	Holders []grid.SiteID // sites that have it; none: it comes from outside, which costs the same everywhere
	Closed  []grid.SiteID // further sites that have it and let nobody copy it
}

// Kind is the structure of a request (figure 1).
type Kind uint8

// Kinds.
const (
	Fixed Kind = iota
	NonFixed
	Flexible
)

var kindNames = [...]string{"fixed", "non-fixed", "flexible"}

// String returns the paper's word.
func (k Kind) String() string { return kindNames[k] }

// Kind returns the structure of r, which is valid.
func (r *Request) Kind() Kind {
	if len(r.Splits) == 0 {
		return Flexible
	}
	for _, s := range r.Splits {
		for _, c := range s {
			if c.Site == "" {
				return NonFixed
			}
		}
	}
	return Fixed
}

// Names reports whether a component of r, which is valid, has to run at a certain site.
func (r *Request) Names() bool {
	return slices.ContainsFunc(r.Splits, func(s Split) bool {
		return slices.ContainsFunc(s, func(c Component) bool { return c.Site != "" })
	})
}

// Validate returns an error wrapping ErrRequest that says what is contradictory or
// out of bounds. It knows no sites: Placeable does.
func (r *Request) Validate() error {
	switch {
	case r.Processors < 1 || r.Processors > ProcessorsMax:
		return badRequest("%d processors, want 1 to %d", r.Processors, ProcessorsMax)
	case len(r.Splits) > SplitsMax:
		return badRequest("%d alternative splits, want at most %d", len(r.Splits), SplitsMax)
	case len(r.Inputs) > InputsMax:
		return badRequest("%d input files, want at most %d", len(r.Inputs), InputsMax)
	case r.ClustersMax < 0:
		return badRequest("a limit of %d sites, want 1 or more, 0 for none", r.ClustersMax)
	case r.Policy != nil && *r.Policy > policyLast:
		return badRequest("policy %d is unknown", *r.Policy)
	case r.CCR > CCRMax:
		return badRequest("communication of %d thousandths of the computation, want at most %d", r.CCR, CCRMax)
	}
	for i := range r.Inputs {
		if r.Inputs[i].Bytes < 0 {
			return badRequest("input %d has %d bytes", i+1, r.Inputs[i].Bytes)
		}
	}
	if len(r.Splits) == 0 {
		return r.validateFlexible()
	}
	if r.ComponentsMin != 0 || r.ComponentsMax != 0 || r.ComponentMin != 0 || r.Each != 0 {
		return badRequest("the components are given, so their number and least size cannot be asked for")
	}
	for i, s := range r.Splits {
		if err := r.validateSplit(i+1, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) validateSplit(number int, s Split) error {
	if len(s) == 0 || len(s) > ComponentsMax {
		return badRequest("split %d has %d components, want 1 to %d", number, len(s), ComponentsMax)
	}
	var sum int64
	named := 0
	for i, c := range s {
		if c.Processors < 1 || c.Processors > ProcessorsMax {
			return badRequest("component %d of split %d has %d processors, want 1 to %d", i+1, number, c.Processors, ProcessorsMax)
		}
		sum += c.Processors
		if c.Site != "" && !siteNamed(s[:i], c.Site) {
			named++
		}
	}
	switch {
	case sum != r.Processors:
		return badRequest("the components of split %d add up to %d processors, the job has %d", number, sum, r.Processors)
	case r.ClustersMax > 0 && named > r.ClustersMax:
		return badRequest("split %d names %d sites, the limit is %d", number, named, r.ClustersMax)
	}
	return nil
}

func siteNamed(s Split, site grid.SiteID) bool {
	for _, c := range s {
		if c.Site == site {
			return true
		}
	}
	return false
}

func (r *Request) validateFlexible() error {
	least, most := max(r.ComponentsMin, 1), r.most()
	switch {
	case r.ComponentsMin < 0 || r.ComponentsMin > ComponentsMax || r.ComponentsMax < 0 || r.ComponentsMax > ComponentsMax:
		return badRequest("%d to %d components, want 1 to %d", r.ComponentsMin, r.ComponentsMax, ComponentsMax)
	case least > most && r.ComponentsMax > 0 && r.ComponentsMax < least:
		return badRequest("at least %d components and at most %d", r.ComponentsMin, r.ComponentsMax)
	case least > most:
		return badRequest("at least %d components on at most %d sites: every component has a site of its own", r.ComponentsMin, r.ClustersMax)
	case r.Each < 0 || r.Processors%r.each() != 0:
		return badRequest("%d processors, which tasks of %d cannot share", r.Processors, r.Each)
	case r.ComponentMin < 0 || r.ComponentMin > r.Processors:
		return badRequest("components of at least %d processors, the job has %d", r.ComponentMin, r.Processors)
	case int64(least)*r.least() > r.Processors:
		return badRequest("%d components of at least %d processors each are %d, the job has %d", least, r.least(), int64(least)*r.least(), r.Processors)
	}
	return nil
}

// most returns the most components that a flexible job may have.
func (r *Request) most() int {
	most := ComponentsMax
	if r.ComponentsMax > 0 {
		most = r.ComponentsMax
	}
	if r.ClustersMax > 0 {
		most = min(most, r.ClustersMax)
	}
	return most
}

// least returns the least size of a component.
func (r *Request) least() int64 {
	each := r.each()
	return (max(r.ComponentMin, 1) + each - 1) / each * each
}

// each returns the processors of a task.
func (r *Request) each() int64 { return max(r.Each, 1) }

// whole returns how many of free processors tasks can have.
func (r *Request) whole(free int64) int64 { return free - free%r.each() }
