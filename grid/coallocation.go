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

// Squad is the tasks of one part of a gang, on the processors of one lease or on this
// site's own: one order has all of them started, and they end as one.
type Squad struct {
	Gang *Gang
	Part int // index in Gang.Parts

	// Addresses tells, by rank, where the tasks of the gang listen, or who forwards to them
	// at the site where these run; nil where it is not known yet, or if they are too many
	// to speak to each other (PeersMax).
	Addresses []string

	// Inputs are the paths of what the job reads, in the order of Job.Inputs, where these
	// tasks run; nil where they are not known yet.
	Inputs []string
}

// Tasks returns how many tasks the squad has.
func (s *Squad) Tasks() int { return s.Gang.TasksOf(s.Part) }

// Sites returns where the tasks run, by rank.
func (g *Gang) Sites() []SiteID {
	var sites []SiteID
	for i := range g.Parts {
		sites = append(sites, slices.Repeat([]SiteID{g.Parts[i].Site}, int(g.Parts[i].Processors/g.Each))...)
	}
	return sites
}

// Tasks returns how many tasks the gang has.
func (g *Gang) Tasks() (all int) {
	for part := range g.Parts {
		all += g.TasksOf(part)
	}
	return all
}

// TasksOf returns how many tasks a part has.
func (g *Gang) TasksOf(part int) int { return int(g.Parts[part].Processors / g.Each) }

// FirstOf returns the rank of the first task of a part.
func (g *Gang) FirstOf(part int) (rank int) {
	for before := range part {
		rank += g.TasksOf(before)
	}
	return rank
}

// Bounds of a gang.
const (
	// RanksMax bounds its tasks: as many processes as the watcher of one site can have at
	// once with room to spare, and what is said of each of them fits one message.
	RanksMax = 1 << 14

	// PeersMax bounds the tasks that have addresses: each site listens once for every task
	// elsewhere.
	PeersMax = 1 << 10
)

// squadShift is where the part stands in the epoch of SquadTask: an execution would have
// to be lost two million times before the two mix.
const squadShift = 21

// EpochMax bounds the epochs of executions: above it stands the part of a squad. An
// execution that a peer names with a higher one is refused, as its end would be taken for
// that of a squad.
const EpochMax = 1<<squadShift - 1

// SquadTask names the execution of the tasks of one part of a gang.
func SquadTask(gang TaskID, part int) TaskID {
	return TaskID{gang.Job, gang.Epoch | uint32(part+1)<<squadShift}
}

// SquadOf is the inverse of SquadTask; ok is false for a task that is no squad.
func SquadOf(id TaskID) (gang TaskID, part int, ok bool) {
	part = int(id.Epoch>>squadShift) - 1
	return TaskID{id.Job, id.Epoch & EpochMax}, part, part >= 0
}
