package node

import (
	"context"
	"sync"

	"gridnode/grid"
	"gridnode/node/guest"
	"gridnode/node/run"
	"gridnode/node/sandbox"
	"gridnode/node/site"
)

// lodgings is the host's side of the owner's rules for other sites: what their processes
// may use. The loop notes it when one starts, and whoever makes the process reads it.
type lodgings struct {
	h      *Host
	mu     sync.Mutex
	limits map[grid.SiteID]lodger
}

// lodger is what is noted of one site.
type lodger struct {
	guest.Limits
	name string // in its certificate
}

// limitsMax bounds the sites whose limits are noted; those of others are noted again when
// something of theirs starts.
const limitsMax = 4096

// note notes what a task of another site that is about to start may use. It is called on
// the loop.
func (l *lodgings) note(task *grid.Task) {
	desk := l.h.loop.site.GuestDesk()
	if desk == nil || task.Job == nil || task.Job.Home == l.h.id {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits == nil || len(l.limits) >= limitsMax {
		l.limits = make(map[grid.SiteID]lodger)
	}
	l.limits[task.Job.Home] = lodger{desk.Limits(task.Job.Home), desk.Name(task.Job.Home)}
}

// name returns the name of a site that has a task here.
func (l *lodgings) name(home grid.SiteID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits[home].name
}

// narrow puts the owner's limits for a guest into the rule of its task.
func (l *lodgings) narrow(r sandbox.Rule, task *grid.Task) sandbox.Rule {
	if task.Job.Home == l.h.id {
		return r
	}
	l.mu.Lock()
	limits := l.limits[task.Job.Home]
	l.mu.Unlock()
	if most := limits.Memory * run.Needs(task).Processors; most > 0 && (r.Limits.Memory == 0 || r.Limits.Memory > most) {
		r.Limits.Memory = most
	}
	if limits.Disk > 0 {
		r.Limits.Disk = limits.Disk
	}
	if limits.Network != guest.Unsaid {
		r.Network = limits.Network == guest.Allow
	}
	return r
}

// Govern changes the owner's rules for other sites.
func (h *Host) Govern(ctx context.Context, rules guest.Config) error {
	_, err := h.Ask(ctx, func(token uint64) grid.Input { return &site.ConfigureGuests{Token: token, Config: rules} })
	return err
}
