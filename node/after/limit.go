package after

import (
	"maps"
	"slices"

	"gridnode/grid"
	"gridnode/node/quota"
)

// limit returns which limit of its user a job waits for that waits for nothing else. Jobs of
// one user that wait for his limits go in the order in which they were submitted: else those
// that need much would wait for ever.
func (g *Gate) limit(w *wait) Reason {
	if g.desk == nil {
		return ""
	}
	cause := g.desk.Full(g.now, w.job)
	if cause == "" {
		if first := g.first(w.job.User); first != nil && quota.Order(first.job, w.job) < 0 {
			cause = g.desk.Full(g.now, first.job)
		}
	}
	return Reason(cause)
}

// first returns the job of a user that is the first to go, of those that wait for his limits.
func (g *Gate) first(user string) *wait {
	if line := g.full[user]; len(line) > 0 {
		return line[0]
	}
	return nil
}

// limited says for people what a job waits for.
func (g *Gate) limited(w *wait, cause quota.Cause) string {
	if first := g.first(w.job.User); first != nil && first != w && g.desk.Full(g.now, w.job) == "" {
		return "an earlier job waits for the same: " + first.job.ID.Short() + ": " + g.desk.Why(g.now, first.job, cause)
	}
	return g.desk.Why(g.now, w.job, cause)
}

// lineFor has a job wait for a limit of its user.
func (g *Gate) lineFor(w *wait, cause quota.Cause) {
	if g.desk.Never(w.job) {
		return // until the limit is another one; it must not keep others from going
	}
	line := g.full[w.job.User]
	at, there := slices.BinarySearchFunc(line, w, func(a, b *wait) int { return quota.Order(a.job, b.job) })
	if !there {
		g.full[w.job.User] = slices.Insert(line, at, w)
	}
	if at == 0 && cause == quota.OverSpend {
		g.renews = min(g.renews, g.desk.Renews(g.now, w.job.User))
	}
}

// stepAside takes a job out of its user's line that waits no more, and has the next looked at.
func (g *Gate) stepAside(w *wait) {
	line := g.full[w.job.User]
	at, there := slices.BinarySearchFunc(line, w, func(a, b *wait) int { return quota.Order(a.job, b.job) })
	if !there {
		return
	}
	if line = slices.Delete(line, at, at+1); len(line) == 0 {
		delete(g.full, w.job.User)
		return
	}
	if g.full[w.job.User] = line; at == 0 {
		g.list(line[0])
	}
}

// take counts a job that is placed.
func (g *Gate) take(j *grid.Job) {
	if g.desk != nil {
		g.desk.Take(j)
	}
}

// give counts a job no longer that was placed, and has the next of its user looked at.
func (g *Gate) give(j *grid.Job) {
	if g.desk != nil {
		g.desk.Give(j)
		g.nextOf(j.User)
	}
}

func (g *Gate) nextOf(user string) {
	if w := g.first(user); w != nil {
		g.list(w)
	}
}

// Priced notes what a job may cost at most that was placed.
func (g *Gate) Priced(j *grid.Job, most grid.Credits) {
	if g.desk != nil {
		g.desk.Priced(j, most)
		g.nextOf(j.User)
	}
}

// Relimit has all jobs looked at again: limits are other ones now.
func (g *Gate) Relimit() {
	clear(g.full)
	g.renews = grid.Never
	for _, w := range slices.SortedFunc(maps.Values(g.waits), func(a, b *wait) int { return quota.Order(a.job, b.job) }) {
		g.list(w)
	}
}

// renew has those looked at who may spend again.
func (g *Gate) renew(now grid.Time) {
	if g.renews > now {
		return
	}
	g.renews = grid.Never
	for _, user := range slices.Sorted(maps.Keys(g.full)) {
		g.list(g.full[user][0])
	}
}
