package live

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gridnode/grid"
	"gridnode/node"
	"gridnode/node/member"
)

// enrolment is the federation of a network's sites, by a clock: certificates begin and end.
// Real nodes have the machine's, virtual ones one that begins at 0. What was drawn for a
// site is the same in both, so that the same sites hold the same cells.
type enrolment struct {
	home    *member.Household
	proofs  []member.Proof
	members []*member.Member // what they say
}

// enrol makes the federation that the nodes are members of, and certifies all. Root key and
// all that is drawn follow from the seed: a network that is started again in the same homes
// is the same federation. Members have names without spaces.
func (l *Live) enrol(began grid.Time) (*enrolment, error) {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("testnet root "), l.cfg.Seed))
	home, err := member.NewHousehold(rand.NewChaCha8(seed), ed25519.NewKeyFromSeed(seed[:]), Federation, began, 10*365*grid.Day)
	if err != nil {
		return nil, err
	}
	e := &enrolment{home: home}
	for i, key := range l.keys {
		name := strings.ReplaceAll(l.work.Sites[i].Name, " ", "-")
		public, err := key.GetPublic().Raw()
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		proof, err := home.Admit(public, name, l.authority(i), member.All)
		if err != nil {
			return nil, err
		}
		m, err := home.Federation.Verify(proof, l.ids[i], began)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		e.proofs, e.members = append(e.proofs, proof), append(e.members, m)
	}
	return e, nil
}

// card returns what makes a node a member.
func (e *enrolment) card(i int) *node.Card {
	return &node.Card{Federation: e.home.Federation, Proof: e.proofs[i]}
}

// lastYear returns when the certificates of real nodes begin: nodes that are started again
// in the same homes have the same ones, except once a year.
func lastYear() grid.Time {
	return grid.Time(time.Date(time.Now().Year()-1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
}
