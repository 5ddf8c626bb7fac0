package lease

import (
	"fmt"
	"slices"

	"gridnode/grid"
)

// Step applies one input at time now and appends to out what the driver must carry
// out in order. now never decreases. Inputs: *grid.Delivery of Invite, Join and Family,
// *grid.Undelivered of them, grid.Tick.
func (ks *Kinship) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	ks.expire(now, out)
	switch in := in.(type) {
	case grid.Tick, *grid.Undelivered: // whatever is not answered is repeated
	case *grid.Delivery:
		if in.From == ks.site {
			return
		}
		switch m := in.Message.(type) {
		case *Invite:
			ks.invited(now, in.From, m, out)
		case *Join:
			ks.joined(now, in.From, m, out)
		case *Family:
			ks.family(now, in.From, m, out)
		default:
			panic(fmt.Sprintf("lease: unknown message %T", m))
		}
	default:
		panic(fmt.Sprintf("lease: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick, and grid.Never if it needs none.
func (ks *Kinship) NextTimer() grid.Time {
	if ks.owed {
		return min(ks.alarms.Next(), ks.quiet)
	}
	return ks.alarms.Next()
}

// expire lets what is due happen.
func (ks *Kinship) expire(now grid.Time, out *grid.Outbox) {
	for a := ks.alarms.Pop(now); a != nil; a = ks.alarms.Pop(now) {
		k := a.Owner
		switch {
		case k.Origin == ByClaim:
			delete(ks.claims, k.Site)
		case k.Until > 0 && now >= k.Until:
			if k.Standing != Declined {
				out.Delete((*kinRecord)(k))
			}
			ks.remove(k)
			ks.answered(k, out)
		default:
			if k.awaited && now >= k.Since+inviteWait {
				ks.answered(k, out)
			}
			ks.speak(now, k, out)
		}
	}
	if ks.owed && now >= ks.quiet {
		ks.owed, ks.quiet = false, now+kinRetryMin
		for _, k := range ks.order {
			if k.Relation == Child && (k.Standing == Linked || k.Standing == Suspended) {
				out.Send(k.Site, ks.news(k, true))
			}
		}
	}
}

// announce tells the children that there is something new, as soon as the last time is
// long enough ago.
func (ks *Kinship) announce(now grid.Time, out *grid.Outbox) {
	ks.owed = true
	ks.expire(now, out)
}

// speak says over a link what there is to say, and sets the alarm for the next time.
func (ks *Kinship) speak(now grid.Time, k *kin, out *grid.Outbox) {
	most := KinPeriod
	switch {
	case k.Relation == Child && k.Origin == ByInvitation && (k.Standing == Linked || k.Standing == Suspended):
		return // it asks
	case k.Standing == Offered || k.Standing == Declined:
		k.pause = grid.Never // the other one speaks, or nobody
	case k.Standing == Invited:
		out.Send(k.Site, &Invite{Number: k.number, Path: ks.path()})
		most = inviteMax
	case k.Standing == Leaving:
		out.Send(k.Site, &Join{Number: k.number, Answer: AnswerNo, Reason: Parted})
		most = inviteMax
	case k.Relation == Parent:
		out.Send(k.Site, ks.word(k))
	case k.Origin == Configured && (k.heard == 0 || k.heard+KinPeriod <= now):
		out.Send(k.Site, &Family{Path: ks.path()})
	}
	at := now.Add(k.pause)
	if k.Until > 0 {
		at = min(at, k.Until)
	}
	if k.awaited {
		at = min(at, max(k.Since+inviteWait, now+1))
	}
	if k.pause != grid.Never {
		k.pause = min(2*k.pause, most)
	}
	ks.alarms.Set(&k.alarm, at)
}

// word is what a child says to its parent, or to who says to be that.
func (ks *Kinship) word(k *kin) *Join {
	if k.Standing == Suspended {
		return &Join{Number: k.number, Answer: AnswerNo, Reason: k.Reason}
	}
	return &Join{Number: k.number}
}

// answered tells whoever invited a site what has come of it.
func (ks *Kinship) answered(k *kin, out *grid.Outbox) {
	if k.awaited {
		k.awaited = false
		out.Local(&Answered{k.Kin})
	}
}

// invited is an invitation's arrival.
func (ks *Kinship) invited(now grid.Time, from grid.SiteID, m *Invite, out *grid.Outbox) {
	k := ks.kin[from]
	if m.Path[len(m.Path)-1] != from || k != nil && m.Number < k.number {
		return // not its own path, or an old copy
	}
	say := func(a JoinAnswer, why Objection) { out.Send(from, &Join{Number: m.Number, Answer: a, Reason: why}) }
	_, sibling := ks.siblings[from]
	switch {
	case k != nil && k.Relation == Parent && (k.Standing == Linked || k.Standing == Suspended):
		k.number = m.Number // agreed by configuration, or before
		if k.Origin == ByInvitation {
			out.Save((*kinRecord)(k))
		}
		out.Send(from, ks.word(k))
		return
	case k != nil && k.Standing == Leaving && k.Relation == Parent && m.Number == k.number:
		say(AnswerNo, Parted)
		return
	case k != nil && k.Standing == Offered:
	case k != nil && k.Standing != Declined && k.Standing != Leaving || sibling && k == nil:
		say(AnswerNo, OtherRelation)
		return
	case ks.consent == ConsentDeny:
		say(AnswerNo, NotWanted)
		return
	case k == nil && (len(ks.kin) >= LinksMax || ks.offers() >= offersMax):
		say(AnswerNo, TooMany)
		return
	}
	if why := ks.refusal(m.Path); why != NoObjection && (why != HasParent || ks.consent == ConsentAllow) {
		say(AnswerNo, why)
		return
	}
	if k == nil {
		k = &kin{Kin: Kin{Link: Link{Site: from}, Origin: ByInvitation}}
		ks.insert(k)
	}
	k.Relation, k.number, k.path = Parent, m.Number, m.Path
	if ks.consent == ConsentAllow {
		ks.join(now, k, out)
		return
	}
	k.Standing, k.Reason, k.Since, k.Until, k.pause = Offered, NoObjection, now, now+offerSpan, grid.Never
	out.Save((*kinRecord)(k))
	ks.alarms.Set(&k.alarm, k.Until)
	say(AnswerWaits, NoObjection)
}

// offers returns how many invitations wait for a decision.
func (ks *Kinship) offers() (n int) {
	for _, k := range ks.order {
		if k.Standing == Offered {
			n++
		}
	}
	return n
}

// joined is a child's word, or that of a site that was invited to be one.
func (ks *Kinship) joined(now grid.Time, from grid.SiteID, m *Join, out *grid.Outbox) {
	k := ks.kin[from]
	if k == nil || k.Relation != Child || k.Standing == Declined {
		why := NoObjection
		if m.Number != 0 {
			why = NotInvited
		} else if m.Answer == AnswerNo && m.Reason != AboveItself && m.Reason != TooDeep {
			why = Parted
		}
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reason: why, Reply: true})
		return
	}
	current := m.Number == k.number || m.Number == 0
	switch {
	case m.Answer == AnswerYes && slices.Contains(ks.path()[:len(ks.path())-1], from) && k.Standing == Invited:
		ks.decline(now, k, AboveItself, out)
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reason: AboveItself, Reply: true})
	case m.Answer == AnswerYes && k.Standing == Invited && !current: // to an invitation before; this one is repeated
	case m.Answer == AnswerYes:
		ks.heard(now, k, out)
	case !current: // of an invitation before
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reason: Parted, Reply: true})
	case m.Answer == AnswerWaits:
		ks.answered(k, out)
	case k.Standing == Invited:
		ks.decline(now, k, m.Reason, out)
	case m.Reason == AboveItself || m.Reason == TooDeep:
		k.heard = now
		if k.Standing != Suspended || k.Reason != m.Reason {
			ks.stand(now, k, Suspended, m.Reason, out)
		}
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reply: true})
	case k.Origin == ByInvitation:
		out.Delete((*kinRecord)(k))
		ks.remove(k)
		ks.relinked(out)
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reason: Parted, Reply: true})
		ks.announce(now, out)
	default: // its users do not want what this site's configuration says: they lend nothing then
		out.Send(from, &Family{Number: m.Number, Path: ks.path(), Reason: Parted, Reply: true})
	}
}

// heard takes in that a child is one.
func (ks *Kinship) heard(now grid.Time, k *kin, out *grid.Outbox) {
	k.heard = now
	if k.Standing != Linked {
		fresh := k.Standing == Invited
		ks.stand(now, k, Linked, NoObjection, out)
		if fresh {
			ks.alarms.Stop(&k.alarm)
			out.Save((*kinRecord)(k))
			ks.answered(k, out)
			ks.announce(now, out)
			return
		}
	}
	out.Send(k.Site, ks.news(k, true))
}

// decline takes in that an invited site will not be a child.
func (ks *Kinship) decline(now grid.Time, k *kin, why Objection, out *grid.Outbox) {
	out.Delete((*kinRecord)(k))
	k.Standing, k.Reason, k.Since, k.Until = Declined, why, now, now+offerSpan
	ks.alarms.Set(&k.alarm, k.Until)
	ks.answered(k, out)
}

// news is what a parent says to a child.
func (ks *Kinship) news(k *kin, reply bool) *Family {
	m := &Family{Number: k.number, Path: ks.path(), Reply: reply}
	if k.Origin != ByInvitation {
		return m
	}
	for _, other := range ks.order {
		if other != k && other.Relation == Child && other.Standing == Linked && len(m.Siblings) < SiblingsMax {
			m.Siblings = append(m.Siblings, other.Site)
		}
	}
	return m
}

// family is a parent's word, or that of a site whose configuration says that it is it.
func (ks *Kinship) family(now grid.Time, from grid.SiteID, m *Family, out *grid.Outbox) {
	if m.Path[len(m.Path)-1] != from {
		return
	}
	k := ks.kin[from]
	switch {
	case k == nil || k.Relation != Parent:
		ks.claimed(now, from, m, out)
	case m.Reason != NoObjection:
		if k.Origin != ByInvitation || m.Number != k.number {
			return // its own configuration stands
		}
		out.Delete((*kinRecord)(k))
		before := k.Standing
		ks.remove(k)
		if before == Linked || before == Suspended {
			ks.relinked(out)
			ks.announce(now, out)
		}
	case k.Standing == Leaving:
		ks.speak(now, k, out)
	case k.Standing == Offered:
		k.path = m.Path
	default:
		ks.above(now, k, m, out)
	}
}

// above takes in who is above and beside this site.
func (ks *Kinship) above(now grid.Time, k *kin, m *Family, out *grid.Outbox) {
	before := ks.path()
	if !slices.Equal(k.path, m.Path) { // what is new comes in steps from the sites above
		k.path, k.pause = m.Path, kinRetryMin
	}
	changed := ks.judge(now, k, out)
	if k.Origin == ByInvitation && k.Standing == Linked && ks.name(k, m.Siblings) {
		ks.relinked(out)
	}
	ks.alarms.Set(&k.alarm, now+k.pause)
	k.pause = min(2*k.pause, KinPeriod)
	if changed {
		out.Send(k.Site, ks.word(k))
	}
	if !slices.Equal(before, ks.path()) {
		ks.announce(now, out)
	}
}

// name takes in the siblings that a parent names, and reports whether they are others.
func (ks *Kinship) name(parent *kin, siblings []grid.SiteID) (changed bool) {
	known := 0
	for _, by := range ks.siblings {
		if by == parent.Site {
			known++
		}
	}
	news := 0
	for _, s := range siblings {
		if s == ks.site || s == parent.Site {
			continue
		}
		news++
		if _, ok := ks.siblings[s]; !ok {
			changed = true
		}
	}
	if !changed && known == news {
		return false
	}
	clear(ks.siblings)
	for _, s := range siblings {
		if s != ks.site && s != parent.Site {
			ks.siblings[s] = parent.Site
		}
	}
	return true
}

// claimed takes in that a site's configuration says that this one is its child.
// Nothing needs to be agreed for that, as the other one only asks; but it must not make
// this site its own ancestor.
func (ks *Kinship) claimed(now grid.Time, from grid.SiteID, m *Family, out *grid.Outbox) {
	if m.Number != 0 {
		if m.Reason == NoObjection && !m.Reply { // it believes in a link that there is not
			out.Send(from, &Join{Number: m.Number, Answer: AnswerNo, Reason: Parted})
		}
		return
	}
	if m.Reason != NoObjection {
		return
	}
	c := ks.claims[from]
	if c == nil {
		if len(ks.claims) >= claimsMax {
			return
		}
		c = &kin{Kin: Kin{Link: Link{from, Parent}, Origin: ByClaim, Since: now}}
		c.alarm.Owner = c
		ks.claims[from] = c
	}
	before, stood := ks.path(), c.Standing
	c.path, c.heard = m.Path, now
	c.Standing, c.Reason = Linked, ks.objection(c)
	if c.Reason != NoObjection {
		c.Standing = Suspended
	}
	ks.alarms.Set(&c.alarm, now+4*KinPeriod)
	if !m.Reply || c.Standing != stood {
		out.Send(from, ks.word(c))
	}
	if !slices.Equal(before, ks.path()) {
		ks.announce(now, out)
	}
}
