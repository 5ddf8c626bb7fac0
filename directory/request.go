package directory

import (
	"fmt"

	"gridnode/grid"
)

// requestsMax bounds the requests without an answer. With a full table new ones
// fail at once, as if the holder had not answered.
const requestsMax = 1 << 14

// purpose is whose request it is.
type purpose uint8

const (
	noPurpose purpose = iota // answered or given up
	forScan                  // a query's scan
	forSum                   // upkeep compares a cell with another holder's
	forCopy                  // upkeep copies quotes that another holder has
	forWay                   // upkeep looks for the parent of a cell
	forKeep                  // upkeep reports a cell to its parent
	forHint                  // the holders of a cell
	forImage                 // a mirror's image of a cell
	forSign                  // that a suspect holder answers again
)

// request is one question to another site. All wait for the same span, so they
// time out in the order in which they were sent, and a token is an index.
type request struct {
	purpose  purpose
	round    uint32 // of the upkeep
	site     grid.SiteID
	query    QueryID
	cell     cell // of the upkeep, whose holders are wanted, or of which an image is
	deadline grid.Time
}

// requests is the table of them.
type requests struct {
	list  []request // from the oldest that may be open on
	begin uint64    // token of list[0]
	head  int       // list[:head] are closed
	open  int
}

// add returns the token of a new request, never 0, or 0 if the table is full.
func (r *requests) add(q request) uint64 {
	if len(r.list)-r.head >= requestsMax {
		return 0
	}
	if r.begin == 0 {
		r.begin = 1
	}
	r.list = append(r.list, q)
	r.open++
	return r.begin + uint64(len(r.list)) - 1
}

// take closes a request to a site and returns it, if it is open.
func (r *requests) take(token uint64, site grid.SiteID) (request, bool) {
	i := token - r.begin
	if token < r.begin || i >= uint64(len(r.list)) || r.list[i].purpose == noPurpose || r.list[i].site != site {
		return request{}, false
	}
	q := r.list[i]
	r.list[i] = request{}
	r.open--
	r.trim()
	return q, true
}

// overdue closes and returns a request whose time is over.
func (r *requests) overdue(now grid.Time) (request, bool) {
	if r.open == 0 || now < r.list[r.head].deadline {
		return request{}, false
	}
	q := r.list[r.head]
	r.list[r.head] = request{}
	r.open--
	r.trim()
	return q, true
}

// next returns when the oldest open request times out.
func (r *requests) next() grid.Time {
	if r.open == 0 {
		return grid.Never
	}
	return r.list[r.head].deadline
}

// trim moves head to the oldest open request and gives space back.
func (r *requests) trim() {
	for r.head < len(r.list) && r.list[r.head].purpose == noPurpose {
		r.head++
	}
	if r.head == len(r.list) || r.head > 64 && r.head > len(r.list)/2 {
		n := copy(r.list, r.list[r.head:])
		clear(r.list[n:])
		r.list = r.list[:n]
		r.begin += uint64(r.head)
		r.head = 0
	}
}

// audit looks at the questions to others.
func (r *requests) audit(now grid.Time) error {
	open := 0
	for i := range r.list {
		if q := &r.list[i]; q.purpose != noPurpose {
			if open++; q.deadline+auditLate < now {
				return fmt.Errorf("a question to %s was to be given up at %v", q.site, q.deadline)
			}
		}
	}
	if open != r.open || open > requestsMax {
		return fmt.Errorf("%d questions are open, and count as %d", open, r.open)
	}
	return nil
}
