package member

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// MetPrefix begins the keys of what is stored of members that were met.
const MetPrefix = "met/"

// outcastAfter is how long after its certificate has ended a site is an outcast. Until then
// it is like one that cannot be reached: it may be certified anew, and go on.
const outcastAfter = grid.Day

// met is what is remembered of a member, after restarts, too, so that it is known when
// nothing more will be heard of it, whatever is under way between the two sites.
type met struct {
	site    grid.SiteID
	expires grid.Time
	chain   []revocation
	outcast bool // and said so
}

// RecordKey implements grid.Record.
func (k *met) RecordKey() string { return MetPrefix + string(k.site) }

// AppendRecord implements grid.Record.
func (k *met) AppendRecord(dst []byte) []byte {
	p := &wirepb.MemberMet{Site: string(k.site), Expires: int64(k.expires)}
	for i := range k.chain {
		p.Chain = append(p.Chain, &wirepb.MemberCertificate{Issuer: k.chain[i].issuer[:], Serial: k.chain[i].serial[:]})
	}
	b, err := proto.MarshalOptions{}.MarshalAppend(dst, p)
	if err != nil {
		panic(fmt.Sprintf("member: record %s: %v", k.RecordKey(), err)) // site IDs are text
	}
	return b
}

func decodeMet(value []byte) (*met, error) {
	var p wirepb.MemberMet
	if err := proto.Unmarshal(value, &p); err != nil {
		return nil, err
	}
	k := &met{site: grid.SiteID(p.Site), expires: grid.Time(p.Expires)}
	for _, c := range p.Chain {
		if len(c.GetIssuer()) != sha256.Size || len(c.GetSerial()) != len(Serial{}) {
			return nil, errors.New("the name of a certificate is cut short")
		}
		k.chain = append(k.chain, revocation{[sha256.Size]byte(c.Issuer), Serial(c.Serial)})
	}
	return k, nil
}

// remember stores what is needed of a member, if it is news. If too many are remembered,
// the one that was met first is forgotten.
func (r *Roll) remember(m *Member, out *grid.Outbox) {
	old := r.met[m.Site]
	if old != nil {
		old.outcast = false
		if old.expires == m.Expires && slices.Equal(old.chain, m.chain) {
			return
		}
	} else {
		if len(r.met) >= membersMax {
			first := r.metOrder[0]
			out.Delete(r.met[first])
			delete(r.met, first)
			r.metOrder = r.metOrder[1:]
		}
		r.metOrder = append(r.metOrder, m.Site)
	}
	k := &met{site: m.Site, expires: m.Expires, chain: m.chain}
	r.met[m.Site] = k
	out.Save(k)
}

// Outcast reports whether a site was a member, is none any more, and will not be one under
// the certificate that it had: that was revoked, or has ended a day ago. To a site that was
// revoked itself all others are outcasts, as none of them hears it.
func (r *Roll) Outcast(site grid.SiteID) bool {
	k := r.met[site]
	return k != nil && k.outcast
}

// Outcasts yields the sites that are Outcast, in the order in which they were met.
func (r *Roll) Outcasts(yield func(site grid.SiteID) bool) {
	for _, site := range r.metOrder {
		if r.Outcast(site) && !yield(site) {
			return
		}
	}
}

// Excluded reports whether this site itself was revoked.
func (r *Roll) Excluded() bool { return r.cfg.Own != nil && r.revoked.Has(r.cfg.Own) }

// judge finds out who has become an outcast, and when the next one may.
func (r *Roll) judge(now grid.Time) {
	r.judged = grid.Never
	excluded := r.Excluded()
	for _, site := range r.metOrder {
		k := r.met[site]
		switch over := k.expires.Add(outcastAfter); {
		case k.outcast || r.members[site] != nil:
		case excluded || r.revoked.hasAny(k.chain) || over <= now:
			k.outcast = true
			r.changed = append(r.changed, Change{Site: site, Outcast: true})
		default:
			r.judged = min(r.judged, over)
		}
	}
}
