package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gridnode/grid"
	"gridnode/node/api"
)

// jobColumns are the columns of listings of jobs.
var jobColumns = []column[api.Job]{
	{head: "ID", text: func(j api.Job) string { return shortID(j.ID) }, full: func(j api.Job) string { return j.ID }},
	{head: "NUMBER", wide: true, text: numberText},
	{head: "NAME", text: func(j api.Job) string { return j.Name }},
	{head: "USER", wide: true, text: func(j api.Job) string { return j.User }},
	{head: "STATE", text: func(j api.Job) string { return j.State }},
	{head: "SITE", text: siteOf},
	{head: "CPUS", text: func(j api.Job) string { return strconv.FormatInt(j.Processors, 10) }},
	{head: "SUBMITTED", text: func(j api.Job) string { return formatInstant(j.Submitted) }},
	{head: "START", text: func(j api.Job) string { return formatInstant(j.Start) }},
	{head: "END", text: func(j api.Job) string { return formatInstant(j.End) }},
	{head: "ELAPSED", text: func(j api.Job) string { return elapsed(j, time.Now()) }},
	{head: "COST", text: func(j api.Job) string { return j.Cost.String() }},
	{head: "EXIT", text: exitText},
	{head: "TIME", wide: true, text: func(j api.Job) string { return formatSpan(grid.Time(j.Time)) }},
	{head: "DEADLINE", wide: true, text: func(j api.Job) string { return formatInstant(j.Deadline) }},
	{head: "LATE", wide: true, text: func(j api.Job) string { return lateText(j, time.Now()) }},
	{head: "BUDGET", wide: true, text: func(j api.Job) string { return budgetText(j.Budget) }},
	{head: "POLICY", wide: true, text: func(j api.Job) string { return j.Policy }},
	{head: "TTL", wide: true, text: ttlText},
	{head: "GPUS", wide: true, text: func(j api.Job) string { return j.GPUs }},
	{head: "HOME", wide: true, text: func(j api.Job) string { return j.Home }},
	{head: "MESSAGES", wide: true, text: func(j api.Job) string { return strconv.Itoa(int(j.Messages)) }},
	{head: "CUT", wide: true, text: func(j api.Job) string { return strings.Join(j.Cut, ",") }},
	{head: "REASON", wide: true, text: func(j api.Job) string { return j.Reason }},
}

// numberText prints the number of a job, that of one of an array with its index.
func numberText(j api.Job) string {
	switch {
	case j.Number == 0:
		return ""
	case j.ArrayIndex != nil:
		return fmt.Sprintf("%d_%d", j.ArrayNumber, *j.ArrayIndex)
	}
	return strconv.FormatUint(j.Number, 10)
}

// shortID returns the part of an ID that tables show.
func shortID(id string) string { return id[:min(len(id), 8)] }

func siteOf(j api.Job) string {
	if j.SiteName != "" {
		return j.SiteName
	}
	return j.Site
}

func exitText(j api.Job) string {
	if j.ExitCode == nil {
		return ""
	}
	return strconv.Itoa(int(*j.ExitCode))
}

// ttlText prints how often a request of a job may be delegated, nothing where none is.
func ttlText(j api.Job) string {
	if j.TTL == nil {
		return ""
	}
	return strconv.Itoa(int(*j.TTL))
}

func budgetText(a *api.Amount) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// formatInstant prints local time to the second, as Slurm does; nothing for none.
func formatInstant(i api.Instant) string {
	if i == 0 {
		return ""
	}
	return i.Time().Local().Format("2006-01-02T15:04:05")
}

// elapsed returns how long a job has run, or ran.
func elapsed(j api.Job, now time.Time) string {
	switch {
	case j.Start == 0:
		return ""
	case j.End != 0:
		return formatSpan(grid.Time(j.End - j.Start))
	}
	return formatSpan(max(grid.Time(api.InstantOf(now)-j.Start), 0))
}

// lateText returns by how much a job exceeds its deadline, or exceeded it.
func lateText(j api.Job, now time.Time) string {
	late := grid.Time(j.Late)
	if !j.Over() && j.Deadline != 0 {
		late = max(grid.Time(api.InstantOf(now)-j.Deadline), 0)
	}
	if late == 0 {
		return ""
	}
	return formatSpan(late)
}

// verdictColumns are the columns of why and submit --dry-run.
func verdictColumns(now time.Time) []column[api.Verdict] {
	return []column[api.Verdict]{
		{head: "SITE", text: func(v api.Verdict) string { return v.SiteName }},
		{head: "ID", wide: true, text: func(v api.Verdict) string { return v.Site }},
		{head: "PRICE", text: func(v api.Verdict) string { return v.Price.String() }},
		{head: "COST", text: func(v api.Verdict) string { return v.Cost.String() }},
		{head: "FINISH", text: func(v api.Verdict) string { return formatInstant(v.Finish) }},
		{head: "IN", text: func(v api.Verdict) string { return untilText(v.Finish, now) }},
		{head: "VERDICT", text: func(v api.Verdict) string { return v.Outcome }},
		{head: "AGAIN", wide: true, text: func(v api.Verdict) string { return formatInstant(v.Until) }},
		{head: "DETAIL", text: func(v api.Verdict) string { return v.Detail }},
	}
}

// untilText prints the span from now to i if it lies ahead.
func untilText(i api.Instant, now time.Time) string {
	if span := grid.Time(i - api.InstantOf(now)); i != 0 && span > 0 {
		return formatSpan(span)
	}
	return ""
}

func printVerdicts(w io.Writer, l listing, reply *api.WhyReply) error {
	if l.format == formatJSON {
		return printJSON(w, reply)
	}
	return printList(w, l, verdictColumns(time.Now()), reply.Verdicts)
}

// bestOf says what could be had instead, as the end of a sentence.
func bestOf(reply *api.WhyReply) string {
	var b strings.Builder
	if v := reply.Fastest; v != nil {
		fmt.Fprintf(&b, "; the earliest finish is %s at %s for %s credits", formatInstant(v.Finish), v.SiteName, v.Cost)
	}
	if v := reply.Cheapest; v != nil {
		fmt.Fprintf(&b, "; the lowest cost is %s credits at %s, done %s", v.Cost, v.SiteName, formatInstant(v.Finish))
	}
	return b.String()
}

// outcome says on stderr how jobs ended and returns the exit code as an error; see tally.
func outcome(cmd *cobra.Command, client *api.Client, jobs []api.Job, quiet, waited bool) error {
	t := tally{waited: waited}
	for i := range jobs {
		t.add(&jobs[i])
	}
	return t.outcome(cmd, client, quiet)
}

// tally counts jobs by what has become of them.
type tally struct {
	waited bool // they were waited for

	count, refused, late, code int
	states                     map[string]int
	first, last                *api.Job // the first that was refused; the last one
}

func (t *tally) add(j *api.Job) {
	if t.states == nil {
		t.states = make(map[string]int)
	}
	t.count++
	t.states[j.State]++
	t.last = j
	if j.Late > 0 {
		t.late++
	}
	switch {
	case j.State == "refused":
		if t.refused++; t.first == nil {
			t.first = j
		}
	case t.waited:
		t.code = max(t.code, jobCode(j))
	}
}

// outcome says on stderr how the jobs ended and returns the exit code as an error: 5
// if one was refused, otherwise, if they were waited for, the highest code of all.
func (t *tally) outcome(cmd *cobra.Command, client *api.Client, quiet bool) error {
	switch {
	case t.refused == 1 && t.count == 1:
		return failf(exitRefused, "job %s was refused: %s", shortID(t.first.ID), refusal(cmd, client, t.first))
	case t.refused > 0:
		return failf(exitRefused, "%d of %d jobs were refused; the first, %s: %s", t.refused, t.count, shortID(t.first.ID), refusal(cmd, client, t.first))
	case t.waited && !quiet && t.count == 1:
		fmt.Fprintln(cmd.ErrOrStderr(), ending(t.last))
	case t.waited && !quiet:
		fmt.Fprintln(cmd.ErrOrStderr(), t.summary())
	}
	return exitStatus(t.code)
}

// refusal says why a job was refused and what could be had instead. Sites go by
// their names here, so the daemon is asked once more.
func refusal(cmd *cobra.Command, client *api.Client, j *api.Job) string {
	reply, err := client.Why(cmd.Context(), j.ID)
	if err != nil || reply.Fastest == nil {
		return cellText(j.Reason)
	}
	for i := range reply.Verdicts {
		if reply.Verdicts[i].Outcome == outcomeChosen {
			return cellText(j.Reason) // a site would have had it: the bank would not
		}
	}
	return fmt.Sprintf("none of %d sites would have it%s", len(reply.Verdicts), bestOf(reply))
}

// jobCode returns the exit code a job that is over stands for.
func jobCode(j *api.Job) int {
	switch {
	case j.State == "done":
		return exitOK
	case j.State == "refused":
		return exitRefused
	case j.ExitCode != nil && *j.ExitCode > 0:
		return int(*j.ExitCode)
	}
	return exitFailed
}

// ending describes the end of one job.
func ending(j *api.Job) string {
	text := fmt.Sprintf("job %s %s", shortID(j.ID), j.State)
	if site := siteOf(*j); site != "" {
		text += " at " + cellText(site)
	}
	if j.Start != 0 && j.End != 0 {
		text += " after " + formatSpan(grid.Time(j.End-j.Start))
	}
	if j.Late > 0 {
		text += ", " + formatSpan(grid.Time(j.Late)) + " after its deadline"
	}
	if j.ExitCode != nil && *j.ExitCode != 0 {
		text += fmt.Sprintf(", exit code %d", *j.ExitCode)
	}
	if j.Cost != 0 {
		text += ", cost " + j.Cost.String()
	}
	if j.Reason != "" {
		text += ": " + cellText(j.Reason)
	}
	return text + cutText(j) + lostText(j)
}

// lostText says that some of what a job has written is lost; nothing if it is not.
func lostText(j *api.Job) (text string) {
	if j.Missing > 0 {
		text = fmt.Sprintf("; its output is missing %d bytes", j.Missing)
	}
	if len(j.Damaged) > 0 {
		text += "; its " + strings.Join(j.Damaged, " and ") + " is damaged: not what it wrote"
	}
	return text
}

// cutText says that not all that a job has written is kept; nothing if it is.
func cutText(j *api.Job) string {
	if len(j.Cut) == 0 {
		return ""
	}
	return "; of its " + strings.Join(j.Cut, " and ") + " only the first part is kept (files.log)"
}

// summary tells how many jobs are in which state, in the order of a job's life, and how many
// missed their deadlines.
func (t *tally) summary() string {
	var parts []string
	for _, state := range jobStates {
		if n := t.states[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := fmt.Sprintf("%d jobs: %s", t.count, strings.Join(parts, ", "))
	if t.late > 0 {
		text += fmt.Sprintf("; %d after the deadline", t.late)
	}
	return text
}

// apiError gives an error of the local API its exit code.
func apiError(err error) error {
	var failure *api.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, api.ErrNoDaemon), errors.Is(err, api.ErrBroken):
		return failf(exitNoDaemon, "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return failf(exitTimeout, "the time-out has passed")
	case !errors.As(err, &failure):
		return err
	}
	switch failure.Code {
	case api.CodeUsage:
		return failf(exitUsage, "%w", err)
	case api.CodeNotFound:
		return failf(exitNotFound, "%w", err)
	case api.CodeUnknown, api.CodeDenied:
		return failf(exitDenied, "%w", err)
	case api.CodeRefused, api.CodeLimit:
		return failf(exitRefused, "%w", err)
	case api.CodeUnavailable:
		return failf(exitNoDaemon, "%w", err)
	}
	return err
}
