package dataset

import (
	"errors"
	"fmt"
	"slices"

	"gridnode/grid"
)

// Audit returns which count of a catalog is not what a recount gives, which of its sets or look-ups waits
// without a timer, or which is put off for longer than it may be; nil: there is nothing of that kind. It is
// asked of a catalog at rest.
func (c *Catalog) Audit(now grid.Time) error {
	puts, lent := 0, 0
	for _, o := range c.sets {
		if o.putting {
			puts++
		}
		if o.lends() {
			lent++
		}
		if err := o.audit(now, c); err != nil {
			return fmt.Errorf("data set %s: %w", o.Name, err)
		}
	}
	alive, waits, keys := 0, 0, len(c.sets)
	for name, l := range c.looks {
		if c.sets[name] == nil {
			keys++
		}
		switch l.phase {
		case waiting:
			waits++
		case finding, asking:
			alive++
		}
		if err := l.audit(now, c); err != nil {
			return fmt.Errorf("look-up of %s: %w", l.name, err)
		}
	}
	switch {
	case puts != c.puts || lent != c.lent:
		return fmt.Errorf("%d data sets are being announced and %d trees, and count as %d and %d", puts, lent, c.puts, c.lent)
	case alive != len(c.alive) || waits != len(c.backlog):
		return fmt.Errorf("%d look-ups are under way and %d wait, and count as %d and %d", alive, waits, len(c.alive), len(c.backlog))
	case alive > looksAlive || puts > putsAlive:
		return fmt.Errorf("%d look-ups are under way, and %d sets are being announced", alive, puts)
	case waits > 0 && alive < looksAlive:
		return fmt.Errorf("%d look-ups wait, and %d are under way", waits, alive)
	case keys != len(c.keys):
		return fmt.Errorf("there are %d keys, and %d are kept", keys, len(c.keys))
	}
	return nil
}

// audit returns what is wrong with when a data set is announced.
func (o *own) audit(now grid.Time, c *Catalog) error {
	next := o.until
	if !o.putting {
		next = min(next, o.next)
	}
	switch {
	case o.pause < announceMin || o.pause > announceMax:
		return fmt.Errorf("it is announced every %v", o.pause)
	case !o.putting && o.next > now+announceMax*5/4:
		return fmt.Errorf("it is announced next at %v", o.next)
	case next <= now && c.puts < putsAlive || next > now && c.due > next:
		return fmt.Errorf("it is due at %v, and looked at next at %v", next, c.due)
	}
	return nil
}

// audit returns what is wrong with a look-up.
func (l *look) audit(now grid.Time, c *Catalog) error {
	most, under := freshFound, slices.Contains(c.alive, l)
	switch l.phase {
	case waiting:
		if !slices.Contains(c.backlog, l) {
			return errors.New("it waits, and nothing will begin it")
		}
		return nil
	case finding:
		most = findMax
	case asking:
		most = askMax
	}
	switch nobody := l.known && len(l.answer.Holders) == 0; {
	case under != (l.phase != resting):
		return fmt.Errorf("it is under way (%t) in phase %d", under, l.phase)
	case under && c.due > l.deadline:
		return fmt.Errorf("it ends at %v, and is looked at next at %v", l.deadline, c.due)
	case l.deadline > now+most:
		return fmt.Errorf("it is in phase %d until %v", l.phase, l.deadline)
	case l.phase == resting && (!l.known || len(l.askers) > 0 || len(l.asked) > 0):
		return fmt.Errorf("it has ended, for %d users and of %d sites asked", len(l.askers), len(l.asked))
	case l.known && nobody != (l.none > 0):
		return fmt.Errorf("%d times nobody was found, at last %d", l.none, len(l.answer.Holders))
	}
	return nil
}
