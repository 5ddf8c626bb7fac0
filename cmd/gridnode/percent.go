package main

import (
	"fmt"
	"strconv"
	"strings"
)

// percentFlag is a flag for a load or a utilization: a number of percent, with or without
// the sign. A number below 1 without it is taken for a mistake.
type percentFlag struct{ value *float64 }

func (f percentFlag) Type() string   { return "PERCENT" }
func (f percentFlag) String() string { return strconv.FormatFloat(*f.value, 'g', -1, 64) }
func (f percentFlag) Set(s string) error {
	number, signed := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || !(v >= 0):
		return fmt.Errorf("want percent, like 80 or 80%%")
	case v < 1 && !signed:
		return fmt.Errorf("less than one percent: for %.4g %% of the processors' time say %.4g; if it is meant, write %s%%", 100*v, 100*v, number)
	}
	*f.value = v
	return nil
}
