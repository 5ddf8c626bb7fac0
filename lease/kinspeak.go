package lease

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Step applies one input at time now and appends to out what the driver must carry
// out in order. now never decreases. Inputs: *grid.Delivery of Invite, Join and Family,
// *grid.Undelivered of them, grid.Tick.
func (f *Kinship) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	f.expire(now, out)
	switch in := in.(type) {
	case grid.Tick, *grid.Undelivered: // whatever is not answered is repeated
	case *grid.Delivery:
		if in.From == f.site {
			return
		}
		switch m := in.Message.(type) {
		case *Invite:
			f.invited(now, in.From, m, out)
		case *Join:
			f.joined(now, in.From, m, out)
		case *Family:
			f.family(now, in.From, m, out)
		default:
			panic(fmt.Sprintf("lease: unknown message %T", m))
		}
	default:
		panic(fmt.Sprintf("lease: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (f *Kinship) NextTimer() grid.Time {
	if f.owed {
		return min(f.alarms.Next(), f.quiet)
	}
	return f.alarms.Next()
}

// expire lets what is due happen.
func (f *Kinship) expire(now grid.Time, out *grid.Outbox) {
	for a := f.alarms.Pop(now); a != nil; a = f.alarms.Pop(now) {
		k := a.Owner
		switch {
		case k.Origin == ByClaim:
			delete(f.claims, k.Site)
		case k.Until > 0 && now >= k.Until:
			if k.Standing != Declined {
				out.Delete((*kinRecord)(k))
			}
			f.remove(k)
			f.answered(k, out)
		default:
			if k.asked && now >= k.Since+inviteWait {
				f.answered(k, out)
			}
			f.speak(now, k, out)
		}
	}
	if f.owed && now >= f.quiet {
		f.owed, f.quiet = false, now+kinRetryMin
		for _, k := range f.order {
			if k.Relation == Child && (k.Standing == Linked || k.Standing == Suspended) {
				out.Send(k.Site, f.news(k, true))
			}
		}
	}
}

// announce tells the children that there is something new, as soon as the last time is
// long enough ago.
func (f *Kinship) announce(now grid.Time, out *grid.Outbox) {
	f.owed = true
	f.expire(now, out)
}

// speak says over a link what there is to say, and sets the alarm for the next time.
func (f *Kinship) speak(now grid.Time, k *kin, out *grid.Outbox) {
	most := KinPeriod
	switch {
	case k.Relation == Child && k.Origin == ByInvitation && (k.Standing == Linked || k.Standing == Suspended):
		return // it asks
	case k.Standing == Offered || k.Standing == Declined:
		k.pause = grid.Never // the other one speaks, or nobody
	case k.Standing == Invited:
		out.Send(k.Site, &Invite{Number: k.number, Path: f.path()})
		most = inviteMax
	case k.Standing == Leaving:
		out.Send(k.Site, &Join{Number: k.number, Answer: AnswerNo, Reason: Parted})
		most = inviteMax
	case k.Relation == Parent:
		out.Send(k.Site, f.word(k))
	case k.Origin == Configured && (k.heard == 0 || k.heard+KinPeriod <= now):
		out.Send(k.Site, &Family{Path: f.path()})
	}
	at := now.Add(k.pause)
	if k.Until > 0 {
		at = min(at, k.Until)
	}
	if k.asked {
		at = min(at, max(k.Since+inviteWait, now+1))
	}
	if k.pause != grid.Never {
		k.pause = min(2*k.pause, most)
	}
	f.alarms.Set(&k.alarm, at)
}

// word is what a child says to its parent, or to who says to be that.
func (f *Kinship) word(k *kin) *Join {
	if k.Standing == Suspended {
		return &Join{Number: k.number, Answer: AnswerNo, Reason: k.Reason}
	}
	return &Join{Number: k.number}
}

// answered tells whoever invited a site what has come of it.
func (f *Kinship) answered(k *kin, out *grid.Outbox) {
	if k.asked {
		k.asked = false
		out.Local(&Answered{k.Kin})
	}
}

// invited is an invitation's arrival.
func (f *Kinship) invited(now grid.Time, from grid.SiteID, m *Invite, out *grid.Outbox) {
	k := f.kin[from]
	if m.Path[len(m.Path)-1] != from || k != nil && m.Number < k.number {
		return // not its own path, or an old copy
	}
	say := func(a Answer, why Objection) { out.Send(from, &Join{Number: m.Number, Answer: a, Reason: why}) }
	_, sibling := f.siblings[from]
	switch {
	case k != nil && k.Relation == Parent && (k.Standing == Linked || k.Standing == Suspended):
		k.number = m.Number // agreed by configuration, or before
		if k.Origin == ByInvitation {
			out.Save((*kinRecord)(k))
		}
		out.Send(from, f.word(k))
		return
	case k != nil && k.Standing == Leaving && k.Relation == Parent && m.Number == k.number:
		say(AnswerNo, Parted)
		return
	case k != nil && k.Standing == Offered:
	case k != nil && k.Standing != Declined && k.Standing != Leaving || sibling && k == nil:
		say(AnswerNo, OtherRelation)
		return
	case f.consent == ConsentDeny:
		say(AnswerNo, NotWanted)
		return
	case k == nil && (len(f.kin) >= LinksMax || f.offers() >= offersMax):
		say(AnswerNo, TooMany)
		return
	}
	if why := f.refusal(m.Path); why != NoObjection && (why != HasParent || f.consent == ConsentAllow) {
		say(AnswerNo, why)
		return
	}
	if k == nil {
		k = &kin{Kin: Kin{Link: Link{Site: from}, Origin: ByInvitation}}
		f.insert(k)
	}
	k.Relation, k.number, k.path = Parent, m.Number, m.Path
	if f.consent == ConsentAllow {
		f.join(now, k, out)
		return
	}
	k.Standing, k.Reason, k.Since, k.Until, k.pause = Offered, NoObjection, now, now+offerSpan, grid.Never
	out.Save((*kinRecord)(k))
	f.alarms.Set(&k.alarm, k.Until)
	say(AnswerWaits, NoObjection)
}

// offers returns how many invitations wait for a decision.
func (f *Kinship) offers() (n int) {
	for _, k := range f.order {
		if k.Standing == Offered {
			n++
		}
	}
	return n
}

// joined is a child's word, or that of a site that was invited to be one.
func (f *Kinship) joined(now grid.Time, from grid.SiteID, m *Join, out *grid.Outbox) {
	k := f.kin[from]
	if k == nil || k.Relation != Child || k.Standing == Declined {
		why := NoObjection
		if m.Number != 0 {
			why = NotInvited
		} else if m.Answer == AnswerNo && m.Reason != AboveItself && m.Reason != TooDeep {
			why = Parted
		}
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reason: why, Reply: true})
		return
	}
	current := m.Number == k.number || m.Number == 0
	switch {
	case m.Answer == AnswerYes && slices.Contains(f.path()[:len(f.path())-1], from) && k.Standing == Invited:
		f.decline(now, k, AboveItself, out)
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reason: AboveItself, Reply: true})
	case m.Answer == AnswerYes && k.Standing == Invited && !current: // to an invitation before; this one is repeated
	case m.Answer == AnswerYes:
		f.heard(now, k, out)
	case !current: // of an invitation before
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reason: Parted, Reply: true})
	case m.Answer == AnswerWaits:
		f.answered(k, out)
	case k.Standing == Invited:
		f.decline(now, k, m.Reason, out)
	case m.Reason == AboveItself || m.Reason == TooDeep:
		k.heard = now
		if k.Standing != Suspended || k.Reason != m.Reason {
			f.stand(now, k, Suspended, m.Reason, out)
		}
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reply: true})
	case k.Origin == ByInvitation:
		out.Delete((*kinRecord)(k))
		f.remove(k)
		f.relinked(out)
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reason: Parted, Reply: true})
		f.announce(now, out)
	default: // its users do not want what this site's configuration says: they lend nothing then
		out.Send(from, &Family{Number: m.Number, Path: f.path(), Reason: Parted, Reply: true})
	}
}

// heard takes in that a child is one.
func (f *Kinship) heard(now grid.Time, k *kin, out *grid.Outbox) {
	k.heard = now
	if k.Standing != Linked {
		fresh := k.Standing == Invited
		f.stand(now, k, Linked, NoObjection, out)
		if fresh {
			f.alarms.Stop(&k.alarm)
			out.Save((*kinRecord)(k))
			f.answered(k, out)
			f.announce(now, out)
			return
		}
	}
	out.Send(k.Site, f.news(k, true))
}

// decline takes in that an invited site will not be a child.
func (f *Kinship) decline(now grid.Time, k *kin, why Objection, out *grid.Outbox) {
	out.Delete((*kinRecord)(k))
	k.Standing, k.Reason, k.Since, k.Until = Declined, why, now, now+offerSpan
	f.alarms.Set(&k.alarm, k.Until)
	f.answered(k, out)
}

// news is what a parent says to a child.
func (f *Kinship) news(k *kin, reply bool) *Family {
	m := &Family{Number: k.number, Path: f.path(), Reply: reply}
	if k.Origin != ByInvitation {
		return m
	}
	for _, other := range f.order {
		if other != k && other.Relation == Child && other.Standing == Linked && len(m.Siblings) < SiblingsMax {
			m.Siblings = append(m.Siblings, other.Site)
		}
	}
	return m
}

// family is a parent's word, or that of a site whose configuration says that it is it.
func (f *Kinship) family(now grid.Time, from grid.SiteID, m *Family, out *grid.Outbox) {
	if m.Path[len(m.Path)-1] != from {
		return
	}
	k := f.kin[from]
	switch {
	case k == nil || k.Relation != Parent:
		f.claimed(now, from, m, out)
	case m.Reason != NoObjection:
		if k.Origin != ByInvitation || m.Number != k.number {
			return // its own configuration stands
		}
		out.Delete((*kinRecord)(k))
		before := k.Standing
		f.remove(k)
		if before == Linked || before == Suspended {
			f.relinked(out)
			f.announce(now, out)
		}
	case k.Standing == Leaving:
		f.speak(now, k, out)
	case k.Standing == Offered:
		k.path = m.Path
	default:
		f.above(now, k, m, out)
	}
}

// above takes in who is above and beside this site.
func (f *Kinship) above(now grid.Time, k *kin, m *Family, out *grid.Outbox) {
	before := f.path()
	if !slices.Equal(k.path, m.Path) { // what is new comes in steps from the sites above
		k.path, k.pause = m.Path, kinRetryMin
	}
	changed := f.judge(now, k, out)
	if k.Origin == ByInvitation && k.Standing == Linked && f.name(k, m.Siblings) {
		f.relinked(out)
	}
	f.alarms.Set(&k.alarm, now+k.pause)
	k.pause = min(2*k.pause, KinPeriod)
	if changed {
		out.Send(k.Site, f.word(k))
	}
	if !slices.Equal(before, f.path()) {
		f.announce(now, out)
	}
}

// name takes in the siblings that a parent names, and reports whether they are others.
func (f *Kinship) name(parent *kin, siblings []grid.SiteID) (changed bool) {
	known := 0
	for _, by := range f.siblings {
		if by == parent.Site {
			known++
		}
	}
	news := 0
	for _, s := range siblings {
		if s == f.site || s == parent.Site {
			continue
		}
		news++
		if _, ok := f.siblings[s]; !ok {
			changed = true
		}
	}
	if !changed && known == news {
		return false
	}
	clear(f.siblings)
	for _, s := range siblings {
		if s != f.site && s != parent.Site {
			f.siblings[s] = parent.Site
		}
	}
	return true
}

// claimed takes in that a site's configuration says that this one is its child.
// Nothing needs to be agreed for that, as the other one only asks; but it must not make
// this site its own ancestor.
func (f *Kinship) claimed(now grid.Time, from grid.SiteID, m *Family, out *grid.Outbox) {
	if m.Number != 0 {
		if m.Reason == NoObjection && !m.Reply { // it believes in a link that there is not
			out.Send(from, &Join{Number: m.Number, Answer: AnswerNo, Reason: Parted})
		}
		return
	}
	if m.Reason != NoObjection {
		return
	}
	c := f.claims[from]
	if c == nil {
		if len(f.claims) >= claimsMax {
			return
		}
		c = &kin{Kin: Kin{Link: Link{from, Parent}, Origin: ByClaim, Since: now}}
		c.alarm.Owner = c
		f.claims[from] = c
	}
	before, stood := f.path(), c.Standing
	c.path, c.heard = m.Path, now
	c.Standing, c.Reason = Linked, f.objection(c)
	if c.Reason != NoObjection {
		c.Standing = Suspended
	}
	f.alarms.Set(&c.alarm, now+4*KinPeriod)
	if !m.Reply || c.Standing != stood {
		out.Send(from, f.word(c))
	}
	if !slices.Equal(before, f.path()) {
		f.announce(now, out)
	}
}
