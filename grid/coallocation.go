package grid

import "slices"

// Coallocation says, in the words of a job's owner, how the job may be divided over
// several sites that run it at the same moment. Package coalloc reads it.
type Coallocation struct {
	Components string // sizes, and sites' IDs, as "8@SITE,8,16"; empty: flexible
	Count      string // flexible: how many components, as "2..4"
	PerSite    int64  // flexible: least processors of a component; 0: any
	SitesMax   int64  // most sites to be combined; 0: no limit
	Policy     string // of the placement; empty: the site's
	CCR        int64  // communication over computation within one site, in thousandths; negative: unknown
}

// Gang is a co-allocated execution as it was placed: all its tasks start together
// ("gang scheduling"). Its tasks are numbered through over its parts, in their order.
// It does not change.
type Gang struct {
	Task  TaskID
	Each  int64 // processors of a task, at least 1
	Parts []GangPart
}

// GangPart is a component of a co-allocated job where it runs.
type GangPart struct {
	Site       SiteID
	Pilot      Pilot // of the processors it has on lease; the zero value: this site's own
	Processors int64 // a multiple of Gang.Each
}

// Rank is one task of a gang.
type Rank struct {
	Gang   *Gang
	Number int // counted from 0

	// Addresses tells, by rank, where the tasks listen, or who forwards to them at the
	// site where this one runs; nil where it is not known yet.
	Addresses []string

	// Inputs are the paths of what the job reads, in the order of Job.Inputs, where this
	// task runs; nil where they are not known yet.
	Inputs []string
}

// Sites returns where the tasks run, by rank.
func (g *Gang) Sites() []SiteID {
	var sites []SiteID
	for i := range g.Parts {
		sites = append(sites, slices.Repeat([]SiteID{g.Parts[i].Site}, int(g.Parts[i].Processors/g.Each))...)
	}
	return sites
}

// Part returns the index of the part that a rank belongs to, the rank's number within
// it, and how many tasks that part has. The part is -1 if there is no such rank.
func (g *Gang) Part(rank int) (part, local, size int) {
	for i := range g.Parts {
		size = int(g.Parts[i].Processors / g.Each)
		if rank < size {
			return i, rank, size
		}
		rank -= size
	}
	return -1, 0, 0
}

// RanksMax bounds the tasks of a gang.
const RanksMax = 1024

// rankShift is where the rank stands in the epoch of RankTask: an execution would have
// to be lost two million times before the two mix.
const rankShift = 21

// EpochMax bounds the epochs of executions: above it stands the rank of a task of a
// gang. An execution that a peer names with a higher one is refused, as its end would be
// taken for that of a task of a gang.
const EpochMax = 1<<rankShift - 1

// RankTask names the execution of one task of a gang.
func RankTask(gang TaskID, rank int) TaskID {
	return TaskID{gang.Job, gang.Epoch | uint32(rank+1)<<rankShift}
}

// GangOf is the inverse of RankTask; ok is false for a task that is not of a gang.
func GangOf(id TaskID) (gang TaskID, rank int, ok bool) {
	rank = int(id.Epoch>>rankShift) - 1
	return TaskID{id.Job, id.Epoch & EpochMax}, rank, rank >= 0
}
