package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

// keeping is the flags of submit that say for how long another site keeps a job of which
// its home hears nothing.
type keeping struct{ lease string }

func (k *keeping) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.lease, "lease", "", fmt.Sprintf("`SPAN`, at least %v, for which another site goes on with the job while this one does not hear of it; then it is ended there and placed anew; none: until its --time is over (default %v)",
		grid.LeaseMin, leaseDefault))
}

func (k *keeping) spec(spec *api.JobSpec, _ time.Time) error {
	switch k.lease {
	case "":
		return nil
	case "none":
		spec.NoLease = true
		return nil
	}
	span, err := parseSpan(k.lease)
	if err == nil && span < grid.LeaseMin {
		err = fmt.Errorf("%q: want at least %v, or none", k.lease, grid.LeaseMin)
	}
	if err != nil {
		return fmt.Errorf("--lease: %w", err)
	}
	spec.Lease = api.Seconds(span)
	return nil
}
