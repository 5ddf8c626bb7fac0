package slurm

import (
	"fmt"
	"strings"
	"time"

	"gridnode/node/api"
)

// Record returns what scontrol show job says of a job, on one line or on several.
func Record(j *api.Job, one bool, now time.Time) string {
	head := fmt.Sprintf("JobId=%d", j.Number)
	if j.ArrayIndex != nil {
		head += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%d", j.ArrayNumber, *j.ArrayIndex)
	}
	end := j.End
	if end == 0 && j.Start != 0 {
		end = api.InstantOf(j.Start.Time().Add(limit(j)))
	}
	each := j.Processors / max(j.Tasks, 1)
	lines := []string{
		head + " JobName=" + strings.ReplaceAll(oneLine(title(j)), " ", "_"),
		fmt.Sprintf("UserId=%s(0) GroupId=(null)(0) MCS_label=N/A", j.User),
		fmt.Sprintf("Priority=1 Nice=%d Account=(null) QOS=normal", j.Nice),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", StateOf(j).Name, Reason(j), either(j.Dependency, "(null)")),
		fmt.Sprintf("Requeue=1 Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%s", j.Restarts, ExitCode(j)),
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=N/A", LongSpan(Elapsed(j, now)), LongSpan(limit(j))),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", Instant(j.Submitted, "Unknown"), Instant(max(j.Submitted, j.Begin), "Unknown")),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=%s", Instant(j.Start, "Unknown"), Instant(end, "Unknown"), Instant(j.Deadline, "N/A")),
		fmt.Sprintf("Partition=%s AllocNode:Sid=N/A", Partition(j)),
		fmt.Sprintf("ReqNodeList=(null) ExcNodeList=(null) NodeList=%s", either(nodeList(j), "(null)")),
		fmt.Sprintf("NumNodes=1 NumCPUs=%d NumTasks=%d CPUs/Task=%d", j.Processors, j.Tasks, each),
		fmt.Sprintf("MinMemoryCPU=%s Features=(null)", memory(j)),
		"Command=" + oneLine(command(j)),
		"WorkDir=" + j.Dir,
		"StdErr=" + either(j.Error, either(j.Output, "(null)")),
		"StdIn=/dev/null",
		"StdOut=" + either(j.Output, "(null)"),
	}
	if one {
		return strings.Join(lines, " ")
	}
	return strings.Join(lines, "\n   ") + "\n"
}
