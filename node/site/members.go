package site

import (
	"gridnode/coalloc/muscle"
	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/lrms/titan"
)

// memberName returns what people call a member.
func (h *packing) memberName(site grid.SiteID) string {
	if site == h.cfg.ID {
		return h.cfg.Name
	}
	if l, heard := h.dir.Load(site); heard && l.Headed.Name != "" {
		return l.Headed.Name
	}
	return string(site)
}

// memberList returns the clusters as they are known now: this site's own processors
// first, if it has any, then the members in the order of the configuration.
func (h *packing) memberList(now grid.Time) (members []muscle.Member) {
	if h.cfg.Processors > 0 {
		state := h.cluster.State(now)
		members = append(members, muscle.Member{
			Site: h.cfg.ID, Name: h.cfg.Name, Processors: h.cfg.Processors, Rating: h.cfg.Rating, Weights: h.cfg.Weights,
			Widest: state.Widest, Wait: max(state.Wait, grid.Time(state.QueuedWork/h.cfg.Processors)),
		})
	}
	reports := h.dir.Headed(h.cfg.ID)
	taken := map[grid.SiteID]bool{h.cfg.ID: true}
	for _, name := range h.members {
		m := h.member(now, name, reports)
		if m.Site == "" || !taken[m.Site] {
			members = append(members, m)
		}
		taken[m.Site] = true
	}
	return members
}

// member returns what is known of a cluster that the configuration names.
func (h *packing) member(now grid.Time, name string, reports []directory.Load) muscle.Member {
	m := muscle.Member{Name: name, Presence: muscle.Unheard}
	var report *directory.Load
	for i := range reports {
		r := &reports[i]
		switch {
		case string(r.Site) == name:
			report = r
		case r.Headed.Name != name || report != nil && string(report.Site) == name:
			continue
		case report != nil:
			m.Presence = muscle.Unresolved
			return m
		default:
			report = r
		}
		if string(r.Site) == name {
			break
		}
	}
	if report == nil {
		if _, heard := h.dir.Load(grid.SiteID(name)); heard {
			m.Site, m.Presence = grid.SiteID(name), muscle.Unwilling
		}
		return m
	}
	said := &report.Headed
	m.Site, m.Name, m.Presence = report.Site, said.Name, muscle.Present
	if m.Name == "" {
		m.Name = string(m.Site)
	}
	m.Processors, m.Rating = said.Processors, said.Rating
	m.Weights = titan.Weights{OverDeadline: said.Weights[0], Makespan: said.Weights[1], Idle: said.Weights[2]}
	m.Widest, m.Wait = report.Widest, report.Wait
	if said.Processors > 0 {
		m.Wait = max(m.Wait, grid.Time(report.QueuedWork/said.Processors)*grid.Second)
	}
	m.Wait -= now - report.Heard
	if sequence, gone := h.gone[m.Site]; gone && sequence >= report.Sequence || now-report.Heard > h.dir.Silence() {
		m.Presence = muscle.Silent
	} else if gone {
		delete(h.gone, m.Site)
	}
	for _, b := range h.booked[m.Site] {
		if h.has(m.Site, b, now) {
			m.Booked = append(m.Booked, muscle.Booking{Processors: b.processors, Start: max(b.start-now, 0), Finish: b.finish - now})
		}
	}
	return m
}

// headed is what this site tells the one that heads it.
func (b *base) headed() directory.Headed {
	if b.cfg.Head == "" {
		return directory.Headed{}
	}
	w := b.cfg.Weights
	return directory.Headed{
		Head: b.cfg.Head, Name: b.cfg.Name, Processors: b.cfg.Processors, Rating: b.cfg.Rating,
		Weights: [3]int64{w.OverDeadline, w.Makespan, w.Idle},
	}
}
