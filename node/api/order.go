package api

import (
	"cmp"
	"fmt"
	"strings"
)

// JobOrder is an order of listings: by a key, and jobs with equal keys by ID. The zero value
// is that of submission.
type JobOrder struct {
	at       int // in jobOrders
	reversed bool
}

// JobKey is what a job is ordered by: a text, or a number.
type JobKey struct {
	Text   string
	Number int64
}

var jobOrders = []struct {
	name string
	key  func(*Job) JobKey
}{
	{"submitted", func(j *Job) JobKey { return JobKey{Number: int64(j.Submitted)} }},
	{"id", func(j *Job) JobKey { return JobKey{Text: j.ID} }},
	{"name", func(j *Job) JobKey { return JobKey{Text: j.Name} }},
	{"user", func(j *Job) JobKey { return JobKey{Text: j.User} }},
	{"state", func(j *Job) JobKey { return JobKey{Text: j.State} }},
	{"site", func(j *Job) JobKey { return JobKey{Text: cmp.Or(j.SiteName, j.Site)} }},
	{"cpus", func(j *Job) JobKey { return JobKey{Number: j.Processors} }},
	{"start", func(j *Job) JobKey { return JobKey{Number: int64(j.Start)} }},
	{"end", func(j *Job) JobKey { return JobKey{Number: int64(j.End)} }},
	{"late", func(j *Job) JobKey { return JobKey{Number: int64(j.Late)} }},
	{"cost", func(j *Job) JobKey { return JobKey{Number: int64(j.Cost)} }},
}

// JobOrders returns the names of all orders.
func JobOrders() []string {
	names := make([]string, len(jobOrders))
	for i := range jobOrders {
		names[i] = jobOrders[i].name
	}
	return names
}

// ParseJobOrder returns the order called name; a dash before it reverses it.
func ParseJobOrder(name string) (JobOrder, error) {
	rest, reversed := strings.CutPrefix(name, "-")
	for i := range jobOrders {
		if jobOrders[i].name == rest {
			return JobOrder{i, reversed}, nil
		}
	}
	return JobOrder{}, fmt.Errorf("%s is no order: want %s", rest, strings.Join(JobOrders(), ", "))
}

// Key returns what o orders j by.
func (o JobOrder) Key(j *Job) JobKey { return jobOrders[o.at].key(j) }

// Compare returns less than 0 if a job with key a comes before one with key b, 0 if the IDs
// decide.
func (o JobOrder) Compare(a, b JobKey) int {
	c := cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Number, b.Number))
	if o.reversed {
		return -c
	}
	return c
}
