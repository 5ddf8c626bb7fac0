package site

import (
	"fmt"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/market"
)

// verdictsMax bounds the sites about which a co-allocated job says something.
const verdictsMax = 64

// answer says how a divided job would be placed now. Nothing is held.
func (c *gangs) answer(now grid.Time, in *Preview, out *grid.Outbox) {
	result := &market.PreviewResult{}
	view := c.coord.View()
	r, err := coalloc.OfJob(in.Job)
	if err == nil {
		r.Inputs = c.inputsOf(nil, in.Job)
		err = r.Placeable(view)
	}
	if err != nil {
		result.Err = err
		out.Answer(in.Token, result)
		return
	}
	policy := c.cfg.Coallocation.Queue.Policy
	if r.Policy != nil {
		policy = *r.Policy
	}
	parts, ok := policy.Place(nil, &r, view, c.limitOf(in.Job))
	var gang *grid.Gang
	if ok {
		gang = &grid.Gang{Each: in.Job.Processors / in.Job.Tasks}
		for _, p := range parts {
			gang.Parts = append(gang.Parts, grid.GangPart{Site: view.Sites[p.Site].ID, Processors: p.Processors})
		}
	}
	result.Verdicts, result.Waits = c.verdicts(now, in.Job, gang), true
	out.Answer(in.Token, result)
}

// explain implements way: why a divided job waits changes from scan to scan, and is not
// stored.
func (c *gangs) explain(e *entry, v *View, _ bool) {
	if e.state == Queued {
		v.Reason = c.whyWaiting(e)
	}
}

// whyWaiting says why a divided job has not started.
func (c *gangs) whyWaiting(e *entry) string {
	view := c.coord.View()
	w := c.coord.Queue().Waiting(e.job.ID)
	switch {
	case w != nil && w.Failures > 0:
		return fmt.Sprintf("waits in the placement queue: tried %d times, %d of them at a site that had no room after all; %d processors are idle at %d sites",
			w.Tries, w.Failures, view.Free(), withProcessors(view))
	case w != nil:
		return fmt.Sprintf("waits in the placement queue: tried %d times; %d processors are idle at %d sites, in parts that do not fit",
			w.Tries, view.Free(), withProcessors(view))
	case c.coord.Knows(e.job.ID):
		return "its components are being claimed"
	case e.reason != "":
		return e.reason
	}
	return "waits for a look at the sites"
}

// withProcessors counts the sites that are there.
func withProcessors(view *coalloc.View) (n int) {
	for i := range view.Sites {
		if view.Sites[i].Processors > 0 {
			n++
		}
	}
	return n
}

// verdicts says what came of each site: first those that have a component, then
// the others, as many as there is room for.
func (c *gangs) verdicts(now grid.Time, j *grid.Job, g *grid.Gang) []market.Verdict {
	inputs, unheld := c.inputsOf(nil, j), c.inputs.unheld(j)
	view := c.coord.View()
	var verdicts []market.Verdict
	chosen := make(map[grid.SiteID]bool)
	if g != nil {
		for i := range g.Parts {
			p := &g.Parts[i]
			chosen[p.Site] = true
			verdicts = append(verdicts, market.Verdict{
				Site: p.Site, Name: c.siteName(p.Site), Finish: grid.Never, Outcome: market.OutcomeChosen,
				Detail: joined(fmt.Sprintf("component %d: %d processors", i, p.Processors), inputsNote(view, j, inputs, unheld, p.Site)),
			})
		}
	}
	for i := range view.Sites {
		v := &view.Sites[i]
		if chosen[v.ID] || v.Processors == 0 || len(verdicts) >= verdictsMax {
			continue
		}
		verdict := market.Verdict{
			Site: v.ID, Name: c.siteName(v.ID), Finish: grid.Never, Outcome: market.OutcomeCandidate,
			Detail: joined(fmt.Sprintf("%d of %d processors are idle", v.Free, v.Processors), inputsNote(view, j, inputs, unheld, v.ID)),
		}
		if seen := c.scout.sites[v.ID]; seen.closed > now {
			verdict.Outcome, verdict.Detail = market.OutcomeRefused, seen.why.String()
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// joined puts a note behind what is said of a site, if there is one.
func joined(text, note string) string {
	if note == "" {
		return text
	}
	return text + "; " + note
}
