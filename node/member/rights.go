package member

import (
	"fmt"
	"strings"
)

// Rights is a set of what a member may do.
type Rights uint16

// What a member may do in a federation.
const (
	MayOffer  Rights = 1 << iota // publish quotes and run jobs of others
	MaySubmit                    // have jobs run by others, and borrow processors
	MayLend                      // lend processors
	MayHold                      // hold cells of the directory
	MayBank                      // keep accounts of others
	MayInvite                    // certify members
	rightsEnd
)

// All is every right, Usual is every right but to keep a bank and to invite.
const (
	All   = rightsEnd - 1
	Usual = MayOffer | MaySubmit | MayLend | MayHold
)

var rightNames = [...]string{"offer", "submit", "lend", "hold", "bank", "invite"}

// Has reports whether all of those rights are in r.
func (r Rights) Has(those Rights) bool { return r&those == those }

// String returns the names with commas between them, "none" for no right.
func (r Rights) String() string {
	var names []string
	for i, name := range rightNames {
		if r.Has(1 << i) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// ParseRights reads what String prints, and "all" and "usual".
func ParseRights(text string) (Rights, error) {
	var r Rights
	for name := range strings.SplitSeq(text, ",") {
		right, err := parseRight(strings.TrimSpace(name))
		if err != nil {
			return 0, err
		}
		r |= right
	}
	return r, nil
}

func parseRight(name string) (Rights, error) {
	switch name {
	case "all":
		return All, nil
	case "usual":
		return Usual, nil
	case "none":
		return 0, nil
	}
	for i, known := range rightNames {
		if name == known {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("right %q: want %s, usual or all", name, strings.Join(rightNames[:], ", "))
}
