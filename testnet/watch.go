package testnet

import "gridnode/grid"

// Call has something be done at an instant, on behalf of a site: what only those
// outside can decide then, such as what its user wants.
func (n *Network) Call(at grid.Time, site int, do func()) {
	n.order(&n.common, max(at, n.now), classOther, event{kind: eventOutside, to: int32(site), from: int32(site), index: n.outside.put(do)})
}

// Step gives a site an input at once. It is for what Call does.
func (n *Network) Step(site int, in grid.Input) { n.laneOf(int32(site)).step(int32(site), in) }

// Pilots returns how many pilots there are anywhere.
func (n *Network) Pilots() (count int) {
	for i := range n.members {
		if a := n.members[i].away; a != nil {
			count += len(a.pilots)
		}
	}
	return count
}

// RunTime returns how long a job really runs on processors of that rating: its true
// run time at home, scaled as Grid-Federation's eq. 2 scales its estimate.
func RunTime(job *grid.Job, at grid.Rating) grid.Time { return runTime(job, at) }

// ExitCode is the exit code of a task that was ended for a reason, as a shell would
// see it; 0 for no reason.
func ExitCode(reason string) int32 {
	switch reason {
	case "":
		return 0
	case TimeLimit:
		return exitTimeLimit
	}
	return exitKilled
}
