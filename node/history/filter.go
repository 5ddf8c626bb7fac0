package history

import (
	"slices"
	"strconv"
	"strings"

	"gridnode/grid"
)

// Filter chooses lines. What is zero is not looked at.
type Filter struct {
	Since, Until grid.Time // it ended in [Since, Until)
	Own, Foreign bool      // of this site; of others
	Site         string    // the other site: ID or name, or that of one of several
	Org          string    // of the other site
	User         string
	Job          string // ID, or the beginning of one; name; number
	Kind         Kind
}

// Match reports whether a line is chosen.
func (f *Filter) Match(l *Line) bool {
	switch {
	case l.End < f.Since || f.Until > 0 && l.End >= f.Until:
	case f.Own && !f.Foreign && l.Foreign || f.Foreign && !f.Own && !l.Foreign:
	case f.Site != "" && !f.with(l):
	case f.Org != "" && l.Org != f.Org:
	case f.User != "" && l.User != f.User:
	case f.Job != "" && !f.names(l):
	case f.Kind != "" && l.Kind != f.Kind:
	default:
		return true
	}
	return false
}

// with reports whether the line is about the site that is asked for.
func (f *Filter) with(l *Line) bool {
	id, name := l.other()
	return string(id) == f.Site || name == f.Site || slices.Contains(l.Sites, grid.SiteID(f.Site))
}

// names reports whether the line is about the job that is asked for.
func (f *Filter) names(l *Line) bool {
	return strings.HasPrefix(l.ID, strings.ToLower(f.Job)) || l.Name == f.Job || l.Number > 0 && strconv.FormatUint(l.Number, 10) == f.Job
}
