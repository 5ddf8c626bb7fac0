package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridnode/grid"
)

// listed is a job as a line of squeue says.
type listed struct {
	id         string // of an array the job's, or with the range of tasks
	state      State
	processors int64
	start, end grid.Time // expected or real; grid.Never if not known
	reason     string
	name       string
}

// queueFormat is what squeue is asked for; the name comes last, as it may hold the
// separator.
const queueFormat = "%i|%T|%C|%S|%e|%r|%j"

// parseQueue reads the lines of squeue -h -o queueFormat. A line that it cannot read is an
// error: a job that is not seen would be taken for one that has ended.
func parseQueue(text string) (jobs []listed, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		f := strings.SplitN(line, "|", 7)
		if len(f) != 7 {
			return nil, fmt.Errorf("squeue printed %q", line)
		}
		processors, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil || processors < 0 || f[0] == "" {
			return nil, fmt.Errorf("squeue printed %q", line)
		}
		jobs = append(jobs, listed{id: f[0], state: stateOf(f[1]), processors: processors, start: instant(f[3]), end: instant(f[4]), reason: f[5], name: f[6]})
	}
	return jobs, nil
}

// instant reads a time as Slurm prints it in UTC, grid.Never for one that it does not know:
// "N/A", "NONE", "Unknown", and years beyond any use.
func instant(text string) grid.Time {
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil || t.Year() < 1971 || t.Year() > 2200 {
		return grid.Never
	}
	return grid.Time(t.UnixMicro())
}

// shown is a job as scontrol or sacct shows it.
type shown struct {
	name       string
	state      State
	exit       int32 // exit code of the batch script
	signal     int32 // that ended it, 0 for none
	start, end grid.Time
	reason     string
	restarts   bool // it was put back into the queue
	node       string
	user, top  int64 // processor-time in microseconds, and most memory in bytes; 0 if not known
}

// parseShow reads one line of scontrol -o show job. Values may hold spaces and "=" signs;
// the keys that are read here have values without spaces and come before those of users,
// but for JobName, whose value is ours.
func parseShow(text string) (j shown, err error) {
	j.start, j.end = grid.Never, grid.Never
	seen := make(map[string]bool)
	for field := range strings.FieldsSeq(text) {
		key, value, found := strings.Cut(field, "=")
		if !found || seen[key] {
			continue
		}
		seen[key] = true
		switch key {
		case "JobName":
			j.name = value
		case "JobState":
			j.state = stateOf(value)
		case "Reason":
			j.reason = value
		case "ExitCode":
			if j.exit, j.signal, err = exitOf(value); err != nil {
				return j, err
			}
		case "StartTime":
			j.start = instant(value)
		case "EndTime":
			j.end = instant(value)
		case "Restarts":
			j.restarts = value != "0"
		case "BatchHost":
			j.node = value
		}
	}
	if !seen["JobState"] || !seen["ExitCode"] {
		return j, fmt.Errorf("scontrol printed %.80q", text)
	}
	return j, nil
}

// exitOf reads "code:signal".
func exitOf(text string) (code, signal int32, err error) {
	c, s, found := strings.Cut(text, ":")
	n, err1 := strconv.ParseUint(c, 10, 31)
	m, err2 := strconv.ParseUint(s, 10, 31)
	if !found || err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("exit code %q", text)
	}
	return int32(n), int32(m), nil
}

// accountFormat is what sacct is asked for.
const accountFormat = "JobIDRaw,State,ExitCode,Start,End,NodeList,TotalCPU,MaxRSS,JobName"

// parseAccount reads the lines of sacct -n -P of one job: the job's, then its steps'. It
// returns false if there are none.
func parseAccount(text, id string) (j shown, found bool, err error) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "|", 9)
		if len(f) != 9 {
			return j, false, fmt.Errorf("sacct printed %q", line)
		}
		if f[0] == id {
			found = true
			j.state, j.start, j.end, j.node, j.name = stateOf(f[1]), instant(f[3]), instant(f[4]), f[5], f[8]
			if j.exit, j.signal, err = exitOf(f[2]); err != nil {
				return j, false, err
			}
			j.user = span(f[6])
			continue
		}
		if strings.HasPrefix(f[0], id+".") {
			j.top = max(j.top, size(f[7]))
		}
	}
	return j, found, nil
}

// span reads a span of sacct, [days-][hours:]minutes:seconds[.fraction], in microseconds.
func span(text string) int64 {
	var days int64
	if d, rest, found := strings.Cut(text, "-"); found {
		days, _ = strconv.ParseInt(d, 10, 64)
		text = rest
	}
	var total float64
	for part := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || n < 0 {
			return 0
		}
		total = total*60 + n
	}
	return min(max(days, 0), 1<<20)*int64(grid.Day) + int64(min(total, 1e9)*1e6)
}

// size reads a size of sacct: a number with K, M, G or T.
func size(text string) int64 {
	unit := int64(1)
	if i := strings.IndexByte("KMGT", lastByte(text)); i >= 0 {
		unit <<= 10 * (i + 1)
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > 1e12 {
		return 0
	}
	return int64(n * float64(unit))
}

func lastByte(text string) byte {
	if text == "" {
		return 0
	}
	return text[len(text)-1]
}

// parseSubmitted reads what sbatch --parsable prints: the job's number, and with several
// clusters the cluster's name behind a semicolon.
func parseSubmitted(text string) (id string, err error) {
	id, _, _ = strings.Cut(strings.TrimSpace(lastOf(text)), ";")
	if !isNumber(id) {
		return "", fmt.Errorf("sbatch printed %.80q", text)
	}
	return id, nil
}

func lastOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func isNumber(id string) bool {
	for _, c := range []byte(id) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return id != "" && len(id) < 20
}

// counts is how many processors of a partition are in which condition.
type counts struct{ allocated, idle, other, total int64 }

// parseCounts sums the lines of sinfo -h -o %C: allocated/idle/other/total. The large
// numbers of some versions end in K.
func parseCounts(text string) (c counts, err error) {
	lines := 0
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "/")
		if len(f) != 4 {
			return c, fmt.Errorf("sinfo printed %q", line)
		}
		lines++
		for i, sum := range []*int64{&c.allocated, &c.idle, &c.other, &c.total} {
			digits, kilo := strings.CutSuffix(f[i], "K")
			n, err := strconv.ParseFloat(digits, 64)
			if err != nil || n < 0 || n > 1e9 {
				return c, fmt.Errorf("sinfo printed %q", line)
			}
			if kilo {
				n *= 1000
			}
			*sum += int64(n)
		}
	}
	if lines == 0 {
		return c, errNoNodes
	}
	return c, nil
}

var errNoNodes = fmt.Errorf("there is no such partition, or it has no nodes")

// parseForetold reads when sbatch --test-only says that a job would start. What lies more
// than a year ahead is no word at all: behind a job without limit Slurm names years that
// nobody will see.
func parseForetold(text string, now grid.Time) (start grid.Time, ok bool) {
	_, rest, found := strings.Cut(text, "to start at ")
	if !found {
		return grid.Never, false
	}
	word, _, _ := strings.Cut(rest, " ")
	start = instant(strings.TrimSpace(word))
	return start, start < now.Add(365*grid.Day)
}

// parseTested reads the number that sbatch --test-only used up, 0 if it names none.
func parseTested(text string) int64 {
	_, rest, _ := strings.Cut(text, "Job ")
	word, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// parseConfigured reads from scontrol show config when the controller printed it, which is in
// its first line.
func parseConfigured(text string) (at grid.Time, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	_, word, found := strings.Cut(line, "data as of ")
	at = instant(strings.TrimSpace(word))
	return at, found && at != grid.Never
}
