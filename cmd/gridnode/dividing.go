//go:build !client

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gridnode/coalloc"
	"gridnode/grid"
	"gridnode/node/api"
)

// details adds to a job how it is divided. tasks reports whether their number was given.
func (d *division) details(spec *api.JobSpec, c *api.Coallocation, tasks bool) error {
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
