package access

import "fmt"

// Role is what an account is to a site. A greater one may do all that a smaller one may.
type Role uint8

// Roles.
const (
	Stranger Role = iota // nobody here: nothing is answered
	Visitor              // of another member's site: looks at the federation
	User                 // submits jobs, and sees and ends its own
	Operator             // sees all jobs, and ends any
	Admin                // decides about prices, members, money and the daemon
)

var roleNames = [...]string{"stranger", "visitor", "user", "operator", "admin"}

// String returns the word for it.
func (r Role) String() string { return roleNames[r] }

// ParseRole reads a role that somebody may be given.
func ParseRole(text string) (Role, error) {
	for r := User; r <= Admin; r++ {
		if roleNames[r] == text {
			return r, nil
		}
	}
	return Stranger, fmt.Errorf("%q: want user, operator or admin", text)
}

// Reach is about whose things a call may be.
type Reach uint8

// Reaches.
const (
	No  Reach = iota // refused
	Own              // about one's own jobs
	Yes              // about all
)

var reachNames = [...]string{"no", "own", "yes"}

// String returns the word for it.
func (r Reach) String() string { return reachNames[r] }

// Sight is what users see of the jobs of others.
type Sight uint8

// Sights.
const (
	Brief  Sight = iota // that something runs, and on how many processors
	Hidden              // nothing
	Full                // all but the output
)

var sightNames = [...]string{"brief", "nothing", "all"}

// String returns the word for it.
func (s Sight) String() string { return sightNames[s] }

// ParseSight is the inverse of String.
func ParseSight(text string) (Sight, error) {
	for s, name := range sightNames {
		if name == text {
			return Sight(s), nil
		}
	}
	return Brief, fmt.Errorf("%q: want brief, nothing or all", text)
}
