package blame

import (
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Bounds of what is unheard of. A job is given up for fewer losses than either.
const (
	unheardMax = 8 // executions
	lostMax    = 8 // losses of one
)

// Unheard are the latest executions of one job at other sites that its home gave up without a
// word of them, oldest first. Their sites may say later what was lost: a machine that was down
// until then may have died of the job. The zero value is ready.
type Unheard struct {
	list []unheard
	late uint32
}

// unheard is one of them.
type unheard struct {
	site  grid.SiteID
	epoch uint32
	told  uint32 // losses of the job of which its site was told
}

// Place begins a placement, whose site is told of all losses that are known now.
func (u *Unheard) Place() { u.late = 0 }

// Told returns, of the losses of the job, those of which the site of the latest placement was
// told: all but those that became known since.
func (u *Unheard) Told(losses uint32) uint32 { return losses - u.late }

// Add notes that an execution was given up, whose site was told of so many losses.
func (u *Unheard) Add(site grid.SiteID, epoch, told uint32) {
	if len(u.list) == unheardMax {
		u.list = slices.Delete(u.list, 0, 1)
	}
	u.list = append(u.list, unheard{site, epoch, told})
}

// Hear takes a site's word that the job has so many losses, of which the site was told or which
// were there. It returns how many are new: none unless the execution was noted, and none twice.
func (u *Unheard) Hear(site grid.SiteID, epoch, losses uint32) uint32 {
	for i, x := range u.list {
		if x.site == site && x.epoch == epoch {
			u.list = slices.Delete(u.list, i, i+1)
			lost := min(losses-min(x.told, losses), lostMax)
			u.late += lost
			return lost
		}
	}
	return 0
}

// Proto returns what is stored of them; nil if that is nothing.
func (u *Unheard) Proto() *wirepb.Unheard {
	if u.late == 0 && len(u.list) == 0 {
		return nil
	}
	p := &wirepb.Unheard{Late: u.late}
	for _, x := range u.list {
		p.Executions = append(p.Executions, &wirepb.UnheardExecution{Site: string(x.site), Epoch: x.epoch, Told: x.told})
	}
	return p
}

// UnheardFromProto is the inverse of Proto, for a job with so many losses.
func UnheardFromProto(losses uint32, p *wirepb.Unheard) Unheard {
	u := Unheard{late: min(p.GetLate(), losses)}
	for _, x := range p.GetExecutions() {
		u.Add(grid.SiteID(x.Site), x.Epoch, x.Told)
	}
	return u
}
