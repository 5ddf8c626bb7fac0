package coalloc

import (
	"strconv"
	"strings"

	"gridnode/grid"
)

// ParseComponents reads what stands behind --components: sizes separated by commas,
// each with "@SITE" behind it if it has to run there, as in "8@leiden,8,16".
// Alternatives, the preferred one first, are separated by "|": "32|16,16". The error
// wraps ErrRequest and quotes the part that is wrong.
func ParseComponents(text string) (Request, error) {
	var r Request
	for i, alternative := range strings.Split(text, "|") {
		if i == SplitsMax {
			return Request{}, badRequest("components %q: more than %d alternatives", text, SplitsMax)
		}
		s, err := parseSplit(alternative)
		if err != nil {
			return Request{}, err
		}
		var sum int64
		for _, c := range s {
			sum += c.Processors
		}
		if i == 0 {
			r.Processors = sum
		} else if sum != r.Processors {
			return Request{}, badRequest("components %q: %q adds up to %d processors, %q to %d", text, strings.TrimSpace(alternative), sum, strings.TrimSpace(strings.Split(text, "|")[0]), r.Processors)
		}
		r.Splits = append(r.Splits, s)
	}
	r.CCR = CCRUnknown
	return r, r.Validate()
}

func parseSplit(text string) (Split, error) {
	var s Split
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		size, site, named := strings.Cut(part, "@")
		if part == "" || named && site == "" {
			return nil, badRequest("components %q: %q: want PROCESSORS or PROCESSORS@SITE, as in 8@leiden,8,16", text, part)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(size), 10, 64)
		if err != nil || n < 1 || n > ProcessorsMax {
			return nil, badRequest("components %q: %q: want 1 to %d processors", text, part, ProcessorsMax)
		}
		if len(s) == ComponentsMax {
			return nil, badRequest("components %q: more than %d", text, ComponentsMax)
		}
		s = append(s, Component{Processors: n, Site: grid.SiteID(strings.TrimSpace(site))})
	}
	return s, nil
}

// ParseFlexible reads what stands behind --coalloc: the number of components, "4",
// or the fewest and the most, "2..4", "..4" or "2..". processors is the size of the
// job and perSite what stands behind --min-per-site, 0 if nothing. The error wraps
// ErrRequest.
func ParseFlexible(text string, processors, perSite int64) (Request, error) {
	r := Request{Processors: processors, ComponentMin: perSite, CCR: CCRUnknown}
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	var err error
	if r.ComponentsMin, err = parseCount(text, low, ranged); err == nil {
		r.ComponentsMax, err = parseCount(text, high, ranged)
	}
	if err == nil && low == "" && high == "" {
		err = badRequest("coalloc %q: want a number of components, or a range like 2..4", text)
	}
	if err != nil {
		return Request{}, err
	}
	return r, r.Validate()
}

func parseCount(text, number string, empty bool) (int, error) {
	number = strings.TrimSpace(number)
	if number == "" && empty {
		return 0, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > ComponentsMax {
		return 0, badRequest("coalloc %q: %q: want 1 to %d components, or a range like 2..4", text, number, ComponentsMax)
	}
	return n, nil
}
