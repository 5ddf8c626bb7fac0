package site

import (
	"fmt"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/market"
)

// dividedVerdictsMax bounds the sites about which a co-allocated job says something.
const dividedVerdictsMax = 64

// dividedPreview answers how a divided job would be placed now. Nothing is held.
func (s *Site) dividedPreview(now grid.Time, in *Preview, out *grid.Outbox) {
	answer := &market.PreviewResult{}
	view := s.co.coord.View()
	r, err := coalloc.OfJob(in.Job)
	if err == nil {
		r.Inputs = s.inputsOf(nil, in.Job)
		err = r.Placeable(view)
	}
	if err != nil {
		answer.Err = err
		out.Answer(in.Token, answer)
		return
	}
	policy := s.cfg.Coallocation.Queue.Policy
	if r.Policy != nil {
		policy = *r.Policy
	}
	parts, ok := policy.Place(nil, &r, view, s.limitOf(&entry{job: in.Job}))
	var gang *grid.Gang
	if ok {
		gang = &grid.Gang{Each: in.Job.Processors / in.Job.Tasks}
		for _, p := range parts {
			gang.Parts = append(gang.Parts, grid.GangPart{Site: view.Sites[p.Site].ID, Processors: p.Processors})
		}
	}
	answer.Verdicts, answer.Waits = s.dividedVerdicts(now, in.Job, gang), true
	out.Answer(in.Token, answer)
}

// whyWaiting says why a divided job has not started.
func (s *Site) whyWaiting(e *entry) string {
	c := s.co
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

// dividedVerdicts says what came of each site: first those that have a component, then
// the others, as many as there is room for.
func (s *Site) dividedVerdicts(now grid.Time, j *grid.Job, g *grid.Gang) []market.Verdict {
	inputs, unheld := s.inputsOf(nil, j), s.unheld(j)
	view := s.co.coord.View()
	var verdicts []market.Verdict
	chosen := make(map[grid.SiteID]bool)
	if g != nil {
		for i := range g.Parts {
			p := &g.Parts[i]
			chosen[p.Site] = true
			verdicts = append(verdicts, market.Verdict{
				Site: p.Site, Name: s.SiteName(p.Site), Finish: grid.Never, Outcome: market.OutcomeChosen,
				Detail: joined(fmt.Sprintf("component %d: %d processors", i, p.Processors), s.inputsNote(j, inputs, unheld, p.Site)),
			})
		}
	}
	for i := range view.Sites {
		v := &view.Sites[i]
		if chosen[v.ID] || v.Processors == 0 || len(verdicts) >= dividedVerdictsMax {
			continue
		}
		verdict := market.Verdict{
			Site: v.ID, Name: s.SiteName(v.ID), Finish: grid.Never, Outcome: market.OutcomeCandidate,
			Detail: joined(fmt.Sprintf("%d of %d processors are idle", v.Free, v.Processors), s.inputsNote(j, inputs, unheld, v.ID)),
		}
		if seen := s.co.sites[v.ID]; seen.closed > now {
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
