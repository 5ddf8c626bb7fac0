package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/api"
)

// division is the flags of submit that say how a job may be divided over sites.
type division struct {
	components, count, placement, ccr string
	perSite, sites                    int64
	spread                            bool
	inputs                            []string
}

// placementNames are the policies in the order of the pages.
const placementNames = "wf, cf, fcm, ca or adaptive"

func (d *division) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.components, "components", "", "run at several sites at the same moment: processors, and where, of each component, a `LIST` like 8@physics,8,16; alternatives separated by |, the best first")
	f.StringVar(&d.count, "coalloc", "", "the same, divided as the placement likes, into that `COUNT` of components: 3, 2..4, ..4 or 2..")
	f.BoolVar(&d.spread, "spread", false, "each task is a process of its own, on the site's processors or on those it leases for the job (delegation.policy)")
	f.Int64Var(&d.perSite, "min-per-site", 0, "with --coalloc: least `COUNT` of processors of a component")
	f.Int64Var(&d.sites, "max-sites", 0, "most `COUNT` of sites to be combined; 0: no limit")
	f.StringVar(&d.placement, "placement", "", "`POLICY` by which components are placed: "+placementNames+" (default: cf with --input, else coallocation.policy of the settings)")
	f.StringArrayVar(&d.inputs, "input", nil, "a data set `NAME[=SIZE]` that every task reads, with its size if its holders need not be asked; may be repeated")
	f.StringVar(&d.ccr, "ccr", "", "`RATIO` of the job's communication to its computation time within one site, as far as it is known")
	_ = cmd.RegisterFlagCompletionFunc("placement", cobra.FixedCompletions(namesOf(coalloc.PolicyAdaptive, coalloc.PolicyCA), cobra.ShellCompDirectiveNoFileComp))
}

// spec adds what the flags say to a job. tasks reports whether their number was given.
func (d *division) spec(spec *api.JobSpec, tasks bool) error {
	c := &api.Coallocation{Components: d.components, Count: d.count, MinPerSite: d.perSite, MaxSites: d.sites, Policy: d.placement}
	spec.Spread = d.spread
	bound := spec.Policy != "" && spec.Policy != "local" || spec.Site != "" || spec.Deadline != 0 || spec.Budget != nil
	switch {
	case d.spread && (bound || d.components != "" || d.count != ""):
		return errors.New("--spread excludes --components and --coalloc, and --policy, --site, --deadline and --budget")
	case d.components == "" && d.count == "" && len(d.inputs) > 0:
		return errors.New("--input is for jobs with --components or --coalloc: --coalloc 1 places a job as a whole close to its inputs")
	case d.components == "" && d.count == "" && (d.perSite != 0 || d.sites != 0 || d.placement != "" || d.ccr != ""):
		return errors.New("--min-per-site, --max-sites, --placement and --ccr are for jobs with --components or --coalloc")
	case d.components == "" && d.count == "":
		return nil
	case d.components != "" && d.count != "":
		return errors.New("--components and --coalloc exclude each other")
	case d.components != "" && d.perSite != 0:
		return errors.New("--min-per-site: the components are given by --components")
	case d.perSite < 0 || d.sites < 0:
		return fmt.Errorf("--min-per-site and --max-sites: %d and %d: want at least 1", d.perSite, d.sites)
	case bound:
		return errors.New("--policy, --site, --deadline and --budget are not for jobs that run at several sites: see --placement")
	}
	if d.placement != "" {
		if _, err := coalloc.ParsePolicy(d.placement); err != nil {
			return fmt.Errorf("--placement: %w", err)
		}
	}
	if d.ccr != "" {
		ratio, err := strconv.ParseFloat(d.ccr, 64)
		if err != nil || math.IsNaN(ratio) || ratio < 0 || ratio > coalloc.CCRMax/1000 {
			return fmt.Errorf("--ccr: %q: want a number from 0 to %d", d.ccr, coalloc.CCRMax/1000)
		}
		c.CCR = &ratio
	}
	for _, text := range d.inputs {
		in, err := parseInput(text)
		if err == nil {
			err = grid.CheckDataName(in.Name)
		}
		if err != nil {
			return fmt.Errorf("--input: %w", err)
		}
		spec.Inputs = append(spec.Inputs, in)
	}
	if err := d.check(spec, tasks); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), coalloc.ErrRequest.Error()+": "))
	}
	if d.components != "" && !tasks {
		spec.Tasks = 0 // as many as the components have
	}
	spec.Coallocation = c
	return nil
}

// check says what is contradictory before any daemon is asked.
func (d *division) check(spec *api.JobSpec, tasks bool) error {
	if d.components == "" {
		r, err := coalloc.ParseFlexible(d.count, spec.Tasks*spec.CPUsPerTask, d.perSite)
		if err == nil {
			r.ClustersMax, r.Each = int(min(d.sites, coalloc.SitesMax)), spec.CPUsPerTask
			err = r.Validate()
		}
		return err
	}
	r, err := coalloc.ParseComponents(d.components)
	switch {
	case err != nil:
		return err
	case tasks && spec.Tasks*spec.CPUsPerTask != r.Processors:
		return fmt.Errorf("--components: %d processors together; --ntasks and --cpus-per-task ask for %d", r.Processors, spec.Tasks*spec.CPUsPerTask)
	case r.Processors%spec.CPUsPerTask != 0:
		return fmt.Errorf("--components: %d processors together cannot be given to tasks of %d", r.Processors, spec.CPUsPerTask)
	}
	r.ClustersMax = int(min(d.sites, coalloc.SitesMax))
	return r.Validate()
}
