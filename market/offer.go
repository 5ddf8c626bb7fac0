package market

import (
	"fmt"

	"gridnode/directory"
	"gridnode/grid"
)

// Offer is what a site is to others: who it is, what it has, and on which terms jobs of
// other sites may use it. Its quotes repeat it, with what is startable at the moment.
type Offer struct {
	Site           grid.SiteID
	Name           string     // for people
	grid.Resources            // Processors 0 for a site that only has users
	grid.Rating               // at least 1 each
	Price          grid.Price // micro-credits a processor-hour, at least 1
	Cost           grid.CostModel
	Foreign        bool // run jobs of other sites
	Modules        bool // run modules of other sites, whatever it does with their other jobs

	GPUWeight int64 // processors that a GPU counts for in what a job costs, 0 to grid.GPUWeightMax
}

// Validate returns an error wrapping ErrConfig that names the first bad field.
func (o *Offer) Validate() error {
	switch {
	case o.Site == "":
		return fmt.Errorf("%w: no site ID", ErrConfig)
	case o.Processors < 0:
		return fmt.Errorf("%w: %d processors, want 0 or more", ErrConfig, o.Processors)
	case o.Speed < 1 || o.Speed > grid.RatingMax:
		return fmt.Errorf("%w: speed %d, want 1 to %d", ErrConfig, o.Speed, int64(grid.RatingMax))
	case o.Bandwidth < 1 || o.Bandwidth > grid.RatingMax:
		return fmt.Errorf("%w: bandwidth %d, want 1 to %d", ErrConfig, o.Bandwidth, int64(grid.RatingMax))
	}
	if o.GPUWeight < 0 || o.GPUWeight > grid.GPUWeightMax {
		return fmt.Errorf("%w: GPUs that count for %d processors, want 0 to %d", ErrConfig, o.GPUWeight, grid.GPUWeightMax)
	}
	return checkPrice(o.Price)
}

// Quote returns the offer as a quote with nothing said of load.
func (o *Offer) Quote() directory.Quote {
	return directory.Quote{
		Site: o.Site, Name: o.Name, Resources: o.Resources, Rating: o.Rating, Price: o.Price, Cost: o.Cost, Foreign: o.Foreign, Modules: o.Modules,
		GPUWeight: o.GPUWeight,
	}
}
