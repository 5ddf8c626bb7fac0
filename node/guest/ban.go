package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridnode/grid"
)

// BanPrefix begins the keys of stored bans.
const BanPrefix = "ban/"

// bansMax bounds the bans of a site.
const bansMax = 4096

// Errors of bans.
var (
	ErrBans  = errors.New("too many bans")
	ErrNoBan = errors.New("no such ban")
)

// Ban keeps a partner out: a site, by its ID or name, or an organisation.
type Ban struct {
	Partner Partner
	Since   grid.Time
	Until   grid.Time // Never: until it is lifted
	Reason  string    // for the owner
}

// RecordKey implements grid.Record.
func (b *Ban) RecordKey() string { return BanPrefix + b.Partner.String() }

// banRecord is the stored form.
type banRecord struct {
	Scope  Scope     `json:"scope"`
	Name   string    `json:"name"`
	Since  grid.Time `json:"since"`
	Until  grid.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
}

// AppendRecord implements grid.Record.
func (b *Ban) AppendRecord(dst []byte) []byte {
	text, err := json.Marshal(banRecord{b.Partner.Scope, b.Partner.Name, b.Since, b.Until, b.Reason})
	if err != nil {
		panic(fmt.Sprintf("guest: ban of %v does not encode: %v", b.Partner, err))
	}
	return append(dst, text...)
}

// Recover takes up what was stored: a ban, or a hold, which is returned. The error says what
// is wrong with the record.
func (d *Desk) Recover(key string, value []byte) (*Hold, error) {
	if strings.HasPrefix(key, HoldPrefix) {
		return openHold(value)
	}
	var r banRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	if r.Scope != Site && r.Scope != Organisation || r.Name == "" {
		return nil, fmt.Errorf("ban of scope %d and name %q", r.Scope, r.Name)
	}
	b := &Ban{Partner{r.Scope, r.Name}, r.Since, r.Until, r.Reason}
	d.bans[b.Partner] = b
	return nil, nil
}

// Ban keeps a partner out, in place of an earlier ban of it.
func (d *Desk) Ban(b Ban, out *grid.Outbox) error {
	if d.bans[b.Partner] == nil && len(d.bans) >= bansMax {
		return fmt.Errorf("%w: there are %d: lift some", ErrBans, len(d.bans))
	}
	d.bans[b.Partner] = &b
	out.Save(&b)
	return nil
}

// Unban lets a partner in again, as far as the rules do.
func (d *Desk) Unban(p Partner, out *grid.Outbox) error {
	b := d.bans[p]
	if b == nil {
		return fmt.Errorf("%w: %v", ErrNoBan, p)
	}
	delete(d.bans, p)
	out.Delete(b)
	return nil
}

// Tick lifts the bans that are over.
func (d *Desk) Tick(now grid.Time, out *grid.Outbox) {
	if d.NextTimer() > now {
		return
	}
	for _, b := range d.Bans() {
		if b.Until <= now {
			_ = d.Unban(b.Partner, out) // it is there
		}
	}
}

// NextTimer returns when the next ban ends, and grid.Never if none does.
func (d *Desk) NextTimer() grid.Time {
	next := grid.Never
	for _, b := range d.bans {
		next = min(next, b.Until)
	}
	return next
}

// Bans returns all bans, in the order of their partners.
func (d *Desk) Bans() []Ban {
	all := make([]Ban, 0, len(d.bans))
	for _, b := range d.bans {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b Ban) int { return a.Partner.Compare(b.Partner) })
	return all
}

// Banned returns the ban that keeps a site out, nil if none does.
func (d *Desk) Banned(now grid.Time, who *Who) *Ban {
	if len(d.bans) == 0 {
		return nil
	}
	for _, p := range [...]Partner{{Site, string(who.Site)}, {Site, who.Name}, {Organisation, who.Org}} {
		if b := d.bans[p]; p.Name != "" && b != nil && b.Until > now {
			return b
		}
	}
	return nil
}
