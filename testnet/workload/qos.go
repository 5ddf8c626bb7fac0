package workload

import (
	"fmt"

	"gridnode/grid"
)

// Length says which of a job's two times the federation takes for its length.
type Length uint8

const (
	// LengthRunTime takes the run time, as the simulations of Grid-Federation
	// do: everybody knows how long a job runs.
	LengthRunTime Length = iota
	// LengthEstimate takes the user's estimate, as real sites must.
	LengthEstimate
)

// QoS gives deadlines and budgets to jobs that have none (Grid-Federation §2.3).
type QoS struct {
	Deadline int64 // thousandths of D(J, R_k), time at home; 2000 in eq. 5; 0: no deadline
	Budget   int64 // thousandths of B(J, R_k), cost at home; 2000 in eq. 4; 0: no budget
	Traffic  int64 // thousandths of the length that are communication; 100 in §3.1; 0 to 1000
	Length   Length
}

// factorMax bounds the factors of QoS: a thousand times the time or cost at home.
const factorMax = 1_000_000

// Check returns an error that names the first field out of range.
func (q QoS) Check() error {
	switch {
	case q.Deadline < 0 || q.Deadline > factorMax:
		return fmt.Errorf("deadline factor of %d thousandths: want 0 (none) to %d", q.Deadline, factorMax)
	case q.Budget < 0 || q.Budget > factorMax:
		return fmt.Errorf("budget factor of %d thousandths: want 0 (none) to %d", q.Budget, factorMax)
	case q.Traffic < 0 || q.Traffic > 1000:
		return fmt.Errorf("communication share of %d thousandths: want 0 to 1000", q.Traffic)
	case q.Length > LengthEstimate:
		return fmt.Errorf("length %d: want run time or estimate", q.Length)
	}
	return nil
}

// PaperQoS is Grid-Federation's: twice the time and twice the cost at home, a
// tenth of the time is communication.
var PaperQoS = QoS{Deadline: 2000, Budget: 2000, Traffic: 100}

// Home is where jobs are submitted.
type Home struct {
	ID grid.SiteID
	grid.Rating
	Price grid.Price
	Cost  grid.CostModel
}

// Job fills *dst, which must be zero, with the grid job that job is at its home:
//
//	deadline = submission + Deadline/1000 · D(J, R_k)  (eqs. 2 and 5)
//	budget   = Budget/1000 · B(J, R_k)                 (eqs. 3 and 4)
//
// B is by the home's cost model (grid.Job.CostAt). The goal is left to the caller.
func (q QoS) Job(job *Job, home *Home, dst *grid.Job) {
	length := job.RunTime
	if q.Length == LengthEstimate {
		length = job.Estimate
	}
	dst.ID = JobID(job.Site, job.Number)
	dst.Home = home.ID
	dst.User = job.User
	dst.Resources = grid.Resources{Processors: job.Processors, Memory: job.Memory}
	dst.Tasks = job.Processors
	dst.Submit = job.Submit
	dst.Estimate = length
	dst.RunTime = job.RunTime
	dst.Work = grid.WorkOf(length, q.Traffic, home.Rating)
	dst.Deadline = grid.Never
	if q.Deadline > 0 {
		dst.Deadline = job.Submit.Add(permille(dst.Work.At(home.Rating), q.Deadline))
	}
	dst.Budget = grid.NoBudget
	if q.Budget > 0 {
		dst.Budget = min(permille(dst.CostAt(home.Rating, home.Price, home.Cost), q.Budget), grid.CreditsMax)
	}
}

// permille returns n·thousandths/1000 without overflow on the way, rounded down.
func permille[T ~int64](n T, thousandths int64) T {
	return n/1000*T(thousandths) + n%1000*T(thousandths)/1000
}

// JobID returns the identity of a job by the index of its site and its number
// there. It is the same in every run, never zero, and differs for any two jobs
// with site below 2^23 and number in 0 to 2^40.
func JobID(site int, number int64) grid.JobID {
	key := uint64(site+1)<<41 ^ uint64(number)
	return grid.JobID{Hi: mix(key), Lo: key}
}

// Origin returns the index of a job's site, below 2^23 - 1, and its number there, of an identity
// that JobID gave it.
func Origin(id grid.JobID) (site int, number int64) {
	return int(id.Lo>>41) - 1, int64(id.Lo & (1<<41 - 1))
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection
// after which neighbouring keys share nothing, so short prefixes of IDs differ.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
