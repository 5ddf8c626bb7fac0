package main

import (
	"fmt"

	"gridnode/grid"
)

// parsePrice reads a price in credits.
func parsePrice(v string) (grid.Price, error) {
	price, err := grid.ParseCredits(v)
	if err == nil && price == 0 {
		return 0, fmt.Errorf("%q: want more than 0", v)
	}
	return price, err
}
