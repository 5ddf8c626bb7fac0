package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

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

// placements are the policies.
var placements = []string{"adaptive", "wf", "cf", "fcm", "ca"}

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
	_ = cmd.RegisterFlagCompletionFunc("placement", cobra.FixedCompletions(placements, cobra.ShellCompDirectiveNoFileComp))
}

// given reports whether the tasks may run at several sites.
func (d *division) given() bool { return d.components != "" || d.count != "" || d.spread }

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
	return d.details(spec, c, tasks)
}
