package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridnode/node/api"
)

// State is a job's state by Slurm's name and code.
type State struct{ Name, Code string }

var (
	pending     = State{"PENDING", "PD"}
	configuring = State{"CONFIGURING", "CF"}
	running     = State{"RUNNING", "R"}
	completing  = State{"COMPLETING", "CG"}
	completed   = State{"COMPLETED", "CD"}
	failed      = State{"FAILED", "F"}
	cancelled   = State{"CANCELLED", "CA"}
	timeout     = State{"TIMEOUT", "TO"}
	nodeFail    = State{"NODE_FAIL", "NF"}
	outOfMemory = State{"OUT_OF_MEMORY", "OOM"}
)

// StateOf returns the state that Slurm would show.
func StateOf(j *api.Job) State {
	switch j.State {
	case "awarded":
		return configuring
	case "running":
		return running
	case "cancelling":
		return completing
	case "done":
		return completed
	case "cancelled":
		return cancelled
	case "failed", "refused":
		return failureOf(j.Reason)
	}
	return pending
}

// failureOf tells failures apart by their reasons.
func failureOf(reason string) State {
	switch {
	case strings.Contains(reason, "wall-clock limit"):
		return timeout
	case strings.Contains(reason, "vanished"):
		return nodeFail
	case strings.Contains(reason, "memory"):
		return outOfMemory
	}
	return failed
}

// Over reports whether a state is final.
func (s State) Over() bool {
	return s != pending && s != configuring && s != running && s != completing
}

// Is reports whether a user's word means s: its name or its code, in either case.
func (s State) Is(word string) bool {
	return strings.EqualFold(word, s.Name) || strings.EqualFold(word, s.Code)
}

// reasons are Slurm's words for what a job waits for.
var reasons = map[string]string{
	"held": "JobHeldUser", "begin": "BeginTime", "dependency": "Dependency", "dependency-never-satisfied": "DependencyNeverSatisfied",
	"singleton": "Dependency", "array-limit": "JobArrayTaskLimit",
	"user-running": "QOSMaxJobsPerUserLimit", "user-processors": "QOSMaxCpuPerUserLimit", "user-spend": "AssocGrpBillingMinutes",
}

// Reason returns why a job waits, or ended as it did, by Slurm's words.
func Reason(j *api.Job) string {
	switch s := StateOf(j); {
	case reasons[j.WaitsFor] != "":
		return reasons[j.WaitsFor]
	case j.State == "queued":
		return "Resources"
	case s == failed && j.ExitCode != nil && *j.ExitCode != 0:
		return "NonZeroExitCode"
	case s == timeout:
		return "TimeLimit"
	}
	return "None"
}

// ID returns the number of a job, or of its array with its index.
func ID(j *api.Job) string {
	if j.ArrayIndex != nil {
		return fmt.Sprintf("%d_%d", j.ArrayNumber, *j.ArrayIndex)
	}
	return strconv.FormatUint(j.Number, 10)
}

// title returns the name of a job without its index.
func title(j *api.Job) string {
	if i := strings.LastIndexByte(j.Name, '['); j.ArrayIndex != nil && i >= 0 {
		return j.Name[:i]
	}
	return j.Name
}

// Partition returns the site that a job is at.
func Partition(j *api.Job) string {
	if j.SiteName != "" {
		return j.SiteName
	}
	if j.Site != "" {
		return j.Site
	}
	return "any"
}

// ExitCode returns exit code and signal, as sacct writes them.
func ExitCode(j *api.Job) string {
	if j.ExitCode == nil {
		return "0:0"
	}
	if c := *j.ExitCode; c > 128 && c <= 128+64 {
		return fmt.Sprintf("0:%d", c-128)
	}
	return fmt.Sprintf("%d:0", *j.ExitCode)
}

// Elapsed returns how long a job has run.
func Elapsed(j *api.Job, now time.Time) time.Duration {
	switch {
	case j.Start == 0:
		return 0
	case j.End != 0:
		return j.End.Time().Sub(j.Start.Time())
	}
	return max(now.Sub(j.Start.Time()), 0)
}

// Span prints a span as squeue does: 0:05, 1:02:03, 1-02:03:04.
func Span(d time.Duration) string {
	s := int64(d / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// LongSpan prints a span as sacct does: 00:00:05, 1-02:03:04.
func LongSpan(d time.Duration) string {
	s := int64(d / time.Second)
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

// Instant prints an instant, or what stands for none.
func Instant(i api.Instant, none string) string {
	if i == 0 {
		return none
	}
	return i.Time().Local().Format("2006-01-02T15:04:05")
}

func limit(j *api.Job) time.Duration { return time.Duration(j.Time) * time.Microsecond }
