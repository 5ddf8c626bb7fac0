package lease

import (
	"fmt"
	"iter"
	"strings"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Standing says how far a link has come, or why it is not used.
type Standing uint8

// Standings. Numbers are stored: append, never renumber.
const (
	Linked    Standing = iota // requests go over it
	Invited                   // this site wants the other as its child, which has not agreed yet
	Offered                   // the other wants this site as its child: its users decide
	Leaving                   // this site is no child any more; the parent has not confirmed it
	Declined                  // the other has declined; shown for a while
	Suspended                 // not used, as it would close a loop or make the hierarchy too deep
)

var standingNames = [...]string{"linked", "invited", "offered", "leaving", "declined", "suspended"}

// String returns the standing's name in tables and in JSON.
func (s Standing) String() string { return standingNames[s] }

// Origin says what a link comes from.
type Origin uint8

// Origins.
const (
	Configured   Origin = iota // MatchConfig.Links
	ByInvitation               // a parent has invited a child
	ByParent                   // the parent by invitation has named a sibling
	ByClaim                    // the other site's configuration says that this one is its child
)

var originNames = [...]string{"configuration", "invitation", "parent", "their configuration"}

// String returns the origin's name in tables and in JSON.
func (o Origin) String() string { return originNames[o] }

// Kin is a link of a site as its users see it.
type Kin struct {
	Link
	Standing
	Origin
	Reason Objection // Declined and Suspended: why
	Since  grid.Time // since when it stands so; 0 if it is configured
	Until  grid.Time // Invited, Offered, Declined: it is forgotten then
}

// kin is a link with what it needs to go on.
type kin struct {
	Kin
	alarm   grid.Alarm[*kin]
	number  uint64        // of the invitation; 0: none
	pause   grid.Time     // until the next message is repeated
	path    []grid.SiteID // Parent, and ByClaim: sites above it, and itself
	fresh   bool          // Parent by invitation: it has not said who is above it since this site agreed
	heard   grid.Time     // of a configured child: its last word; ByClaim: the last claim
	awaited bool          // Invited: whoever invited waits for a word
}

// LinkPrefix begins the keys of the records of a Kinship.
const LinkPrefix = "link/"

// kinRecord is the stored form of a link made by invitation.
type kinRecord kin

// RecordKey implements grid.Record.
func (r *kinRecord) RecordKey() string { return LinkPrefix + string(r.Site) }

// AppendRecord implements grid.Record.
func (r *kinRecord) AppendRecord(dst []byte) []byte {
	standing := r.Standing
	if standing == Suspended { // whether it is must be found out anew
		standing = Linked
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, &wirepb.LinkRecord{
		Site: string(r.Site), Relation: uint32(r.Relation), Standing: uint32(standing), Number: r.number, Since: int64(r.Since), Until: int64(r.Until),
	})
	if err != nil {
		panic(fmt.Sprintf("lease: record %s: %v", r.RecordKey(), err)) // all strings were checked when they came in
	}
	return b
}

// decodeKin is the inverse of AppendRecord. A record that this program did not write
// is an error.
func decodeKin(value []byte) (*kin, error) {
	var p wirepb.LinkRecord
	if err := proto.Unmarshal(value, &p); err != nil {
		return nil, err
	}
	k := &kin{Kin: Kin{
		Link: Link{grid.SiteID(p.Site), Relation(p.Relation)}, Standing: Standing(p.Standing), Origin: ByInvitation,
		Since: grid.Time(p.Since), Until: grid.Time(p.Until),
	}, number: p.Number}
	var c check
	c.site("site", p.Site)
	c.Within("relation", int64(p.Relation), int64(Child), int64(Parent))
	c.Within("standing", int64(p.Standing), int64(Linked), int64(Leaving))
	c.number(p.Number)
	for _, v := range []int64{p.Since, p.Until} {
		c.Within("instant", v, 0, int64(grid.Never))
	}
	return k, c.Err
}

// Recover takes up the links that were made by invitation before a restart; records
// of other kinds are passed over. What the configuration says by now goes first.
func (ks *Kinship) Recover(now grid.Time, records iter.Seq2[string, []byte], out *grid.Outbox) error {
	ks.numbers = max(ks.numbers, uint64(max(now, 1)))
	for key, value := range records {
		if !strings.HasPrefix(key, LinkPrefix) {
			continue
		}
		k, err := decodeKin(value)
		if err != nil {
			return fmt.Errorf("recover %s: %w", key, err)
		}
		if ks.kin[k.Site] != nil || k.Site == ks.site || len(ks.kin) >= LinksMax {
			out.Delete((*kinRecord)(k))
			continue
		}
		if parent := ks.parent(); k.Relation == Parent && k.Standing == Linked && parent != nil {
			k.Standing, k.Until = Leaving, now+leaveSpan
			out.Save((*kinRecord)(k))
		}
		k.pause = kinRetryMin
		ks.insert(k)
		ks.alarms.Set(&k.alarm, now)
	}
	return nil
}
