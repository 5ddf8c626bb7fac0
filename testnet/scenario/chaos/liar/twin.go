// Package liar does to a twin of a site what an honest site would not do: it presents cheques
// without the word of the other side, submits jobs without a guarantee or with a cheque that does
// not cover them, promises and lends what was not asked for, or too late, or for too much, does not
// answer, and says everything twice. What comes of it nobody hears, so a run goes on as if
// nothing had been. Each function returns what the site has fallen for, nil if nothing: what
// is refused changes nothing, and what comes twice happens once.
package liar

import (
	"fmt"

	"gridnode/grid"
	"gridnode/node/site"
)

// Twin is a site that nobody hears: what would come up if the daemon of a site died now.
type Twin struct {
	Site *site.Site
	ID   grid.SiteID
	Now  grid.Time     // on its clock
	Base uint64        // of the numbers of what is made up: other looks have others
	Bank grid.SiteID   // a bank that it accepts
	Then []grid.SiteID // other sites that it listens to, two at least
	made uint64

	twice error             // of a question that was repeated
	saved map[string][]byte // since Echo; nil: forgotten
}

// mark begins the IDs of jobs that there are not.
const mark = 0x6c696172

// task returns the ID of a task that there is not.
func (t *Twin) task() grid.TaskID {
	t.made++
	return grid.TaskID{Job: grid.JobID{Hi: mark, Lo: t.Base + t.made}, Epoch: 1}
}

// hear has the site hear a message, and returns its answers.
func (t *Twin) hear(from grid.SiteID, m grid.Message) (answers []grid.Message) {
	out := t.step(&grid.Delivery{From: from, Message: m})
	for _, s := range out.Sends {
		if s.To == from {
			answers = append(answers, s.Message)
		}
	}
	return answers
}

// step gives the site an input, and returns what it orders.
func (t *Twin) step(in grid.Input) *grid.Outbox {
	out := new(grid.Outbox)
	t.Site.Step(t.Now, in, out)
	t.Site.Step(t.Now, grid.Tick{}, out)
	return out
}

// answer returns the first answer of a type, its zero value if there is none.
func answer[T any](answers []grid.Message) (a T, there bool) {
	for _, m := range answers {
		if a, there = m.(T); there {
			return a, true
		}
	}
	return a, false
}

// lie is a message that is to change nothing.
type lie struct {
	what string
	from grid.SiteID
	m    grid.Message
}

func (l *lie) fallen(how string, args ...any) error {
	return fmt.Errorf("%s %s: %s", l.from, l.what, fmt.Sprintf(how, args...))
}
