package grid

import (
	"fmt"
	"math"
	"math/bits"
)

// Goal is what a job's owner wants optimised (Grid-Federation §2.2).
type Goal uint8

const (
	// GoalLocal runs the job at home.
	GoalLocal Goal = iota
	// GoalCost asks for the cheapest site that meets the deadline (OFC).
	GoalCost
	// GoalTime asks for the fastest site within the budget (OFT).
	GoalTime
	// GoalSpill tries home first, then the others by falling speed
	// (Grid-Federation, experiment 2: a federation without economy).
	GoalSpill
)

var goalNames = [...]string{"local", "cheapest", "fastest", "spill"}

// String returns the name users type after --policy.
func (g Goal) String() string { return goalNames[g] }

// ParseGoal is the inverse of String.
func ParseGoal(s string) (Goal, error) {
	for g, name := range goalNames {
		if s == name {
			return Goal(g), nil
		}
	}
	return 0, fmt.Errorf("%q: want cheapest, fastest, local or spill", s)
}

// Resources is what a site has or a job needs.
type Resources struct {
	Processors int64 // at least 1 for a job; 0 is legal for a site without machines
	Memory     int64 // bytes per processor; 0 means unspecified
}

// Rating is how fast a site computes and communicates (Grid-Federation table 1).
type Rating struct {
	Speed     int64 // MIPS rating μ, 1 to RatingMax
	Bandwidth int64 // γ of its interconnect in Mb/s, 1 to RatingMax
}

// RatingMax bounds speed and bandwidth.
const RatingMax = 1 << 40

// Work is the size of one job as the model of Grid-Federation §2.1 sees it.
// A MIPS rating of 1 executes one instruction a microsecond, and 1 Mb/s moves
// one bit a microsecond, so both divide straight into Time.
type Work struct {
	Instructions int64 // l/p: per processor; at least 0
	Traffic      int64 // Γ(J, R_k) = α·γ_k of eq. 1, in bits; at least 0
}

// WorkOf returns the work of a job that takes span at its home site, of which
// commPermille thousandths are communication (the paper uses 100).
func WorkOf(span Time, commPermille int64, home Rating) Work {
	comm := mulDiv(int64(span), commPermille, 1000)
	return Work{
		Instructions: mulDiv(int64(span)-comm, home.Speed, 1),
		Traffic:      mulDiv(comm, home.Bandwidth, 1),
	}
}

// At returns how long the work takes at a site (eq. 2), rounded up, at most SpanMax.
// At the site it was made from by WorkOf it returns exactly the span given there.
func (w Work) At(r Rating) Time {
	return min(ceilDiv(w.Instructions, r.Speed)+ceilDiv(w.Traffic, r.Bandwidth), SpanMax)
}

// mulDiv returns a*b/c for non-negative a, b and positive c, saturating.
func mulDiv(a, b, c int64) int64 {
	const limit = uint64(math.MaxInt64)
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return int64(limit)
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, limit))
}

func ceilDiv(a, b int64) Time {
	if a <= 0 || b <= 0 {
		return 0
	}
	return min(Time((a-1)/b+1), SpanMax)
}

// Job is what a user submits. It does not change after submission.
type Job struct {
	ID   JobID
	Home SiteID // where it was submitted
	User string // local account or key that submitted it; at most 64 bytes
	Name string // at most 128 bytes

	Resources
	GPUs  GPUs  // of its home, beside processors
	Tasks int64 // processes that start together; Processors is a multiple of it; at least 1

	Submit   Time // instant of submission on the home site's clock
	Estimate Time // the user's bound on the run time at home, more than 0; killed beyond its limit
	Work     Work // the same bound as work, to be turned into time at any site

	Deadline Time    // instant on the home site's clock by which it must have finished; Never if none
	Budget   Credits // most its owner pays; negative if none
	Goal     Goal
	Site     SiteID // the only site it may run at; empty if any

	Coallocate *Coallocation // how it may be divided over sites; nil: it runs at one
	Spread     bool          // its tasks may run at several sites, on processors leased for them
	Inputs     []DataSet     // what every task of it reads; at most InputsMax
	TTL        int32         // how often a request for processors of it may be delegated (DTTL), at most TTLMax; 0: as often as its site says; NoTTL: never

	Number   uint64 // of the job at its home, for those who name jobs by numbers; 0: its home numbers none
	Restarts int32  // how often it was run again because its owner, or its terms, wanted it
	Array    *Array // its place in an array; nil: none
	Terms    *Terms // when it may be placed; nil: at once

	Command *Command // what to execute; nil in virtual time

	// RunTime is how long the job really runs at home. Only the virtual executor
	// reads it; it is zero in production. A core must not.
	RunTime Time
}

// NoBudget is the Budget of a job without one.
const NoBudget Credits = -1

// TTLMax bounds Job.TTL, and NoTTL is that of a job whose requests are not delegated: "a
// resource request with a DTTL equal to 0 cannot be delegated" (Delegated MatchMaking §4.3).
const (
	TTLMax       = 16
	NoTTL  int32 = -1
)

// EstimateAt returns the bound on the job's run time at a site (eq. 2).
func (j *Job) EstimateAt(r Rating) Time { return max(j.Work.At(r), 1) }

// CostAt returns what a site with this rating and price charges for the whole of
// the job's estimate. Eq. 3 charges for computing only, B(J, R_m) = c_m · l/(μ_m · p);
// by processor-time a site charges for the time that the processors are taken.
func (j *Job) CostAt(r Rating, price Price, model CostModel) Credits {
	span := j.EstimateAt(r)
	if model == CostPaper {
		span = Work{Instructions: j.Work.Instructions}.At(r)
	}
	return model.Cost(price, j.Processors, span)
}

// Command is a process to run. Its encoded size is at most 48 KiB.
type Command struct {
	Args []string // Args[0] is looked up in PATH of the executing site; of a module, its name
	Env  []string // KEY=VALUE, added to what the site gives
	Dir  string   // working directory at the home site; elsewhere a scratch directory is used

	Module *Module // what runs instead of a program of the site; nil: nothing does
	Files  *Files  // what it brings along and what is brought home; nil: nothing special

	// Output and Error are the files at home into which what it has written goes when it is over: absolute
	// paths, in which Slurm's %j, %A, %a, %x, %u, %N and so on stand for what they do there. Empty Error: both
	// go to Output, in the order of writing. Empty Output: they are kept, and nothing more.
	Output, Error string
	Append        bool // to the files; else they are written anew

	Terminal bool // it gets a pseudo-terminal, which its owner may look at

	// Each starts it once for each of the job's tasks; else it is started once, and starts them itself. What may
	// run at several sites is started for each task, whatever this says.
	Each bool
}

// Module is a program of WebAssembly, which is fetched from the job's home.
type Module struct {
	Digest string // SHA-256 of its content, 64 lower-case hexadecimal digits
	Size   int64  // bytes, 1 to ModuleMax
}

// ModuleMax bounds the size of a module.
const ModuleMax = 64 << 20

// IsModule reports whether the job is a module, which any site runs the same.
func (j *Job) IsModule() bool { return j.Command != nil && j.Command.Module != nil }

// Beside returns how many processes are started of the job where all of it runs: one for each
// task, or one in all.
func (j *Job) Beside() int64 {
	if j.Command != nil && j.Command.Each {
		return max(j.Tasks, 1)
	}
	return 1
}

// Result is how an execution ended.
type Result struct {
	Start, End Time   // on the executing site's clock
	ExitCode   int32  // of the process; 128+signal when it was killed
	Reason     string // empty when it ended by itself; else why it was ended, at most 256 bytes
	Cost       Credits
	Silent     bool // it wrote nothing and left no files, as far as who ran it knows: there is nothing to fetch

	Output [2]Kept // its standard output and error
}

// Kept is an output as it was kept where its job ran. Of the zero value nothing is known; or there
// was nothing in it.
type Kept struct {
	Size int64    // bytes
	Sum  [16]byte // the first half of their SHA-256; zero: not known
}
