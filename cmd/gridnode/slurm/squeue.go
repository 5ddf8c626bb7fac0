package slurm

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"gridnode/node/api"
)

// QueueFormat is squeue's own format.
const QueueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"

// column is one field of a listing.
type column[T any] struct {
	head string
	text func(T, time.Time) string
}

// queueLetters are squeue's fields by letter; queueNames by the names of -O.
var queueLetters = map[byte]column[*api.Job]{
	'i': {"JOBID", func(j *api.Job, _ time.Time) string { return ID(j) }},
	'A': {"JOBID", func(j *api.Job, _ time.Time) string { return strconv.FormatUint(j.Number, 10) }},
	'F': {"ARRAY_JOB_ID", func(j *api.Job, _ time.Time) string { return strconv.FormatUint(max(j.ArrayNumber, one(j)), 10) }},
	'K': {"ARRAY_TASK_ID", func(j *api.Job, _ time.Time) string { return index(j) }},
	'j': {"NAME", func(j *api.Job, _ time.Time) string { return title(j) }},
	'u': {"USER", func(j *api.Job, _ time.Time) string { return j.User }},
	't': {"ST", func(j *api.Job, _ time.Time) string { return StateOf(j).Code }},
	'T': {"STATE", func(j *api.Job, _ time.Time) string { return StateOf(j).Name }},
	'M': {"TIME", func(j *api.Job, now time.Time) string { return Span(Elapsed(j, now)) }},
	'l': {"TIME_LIMIT", func(j *api.Job, _ time.Time) string { return Span(limit(j)) }},
	'L': {"TIME_LEFT", func(j *api.Job, now time.Time) string { return Span(max(limit(j)-Elapsed(j, now), 0)) }},
	'D': {"NODES", func(*api.Job, time.Time) string { return "1" }},
	'C': {"CPUS", func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors, 10) }},
	'R': {"NODELIST(REASON)", func(j *api.Job, _ time.Time) string { return where(j) }},
	'N': {"NODELIST", func(j *api.Job, _ time.Time) string { return nodeList(j) }},
	'B': {"EXEC_HOST", func(j *api.Job, _ time.Time) string { return nodeList(j) }},
	'P': {"PARTITION", func(j *api.Job, _ time.Time) string { return Partition(j) }},
	'r': {"REASON", func(j *api.Job, _ time.Time) string { return Reason(j) }},
	'V': {"SUBMIT_TIME", func(j *api.Job, _ time.Time) string { return Instant(j.Submitted, "N/A") }},
	'S': {"START_TIME", func(j *api.Job, _ time.Time) string { return Instant(max(j.Start, j.Begin), "N/A") }},
	'e': {"END_TIME", func(j *api.Job, _ time.Time) string { return Instant(j.End, "N/A") }},
	'Z': {"WORK_DIR", func(j *api.Job, _ time.Time) string { return j.Dir }},
	'o': {"COMMAND", func(j *api.Job, _ time.Time) string { return command(j) }},
	'm': {"MIN_MEMORY", func(j *api.Job, _ time.Time) string { return memory(j) }},
	'E': {"DEPENDENCY", func(j *api.Job, _ time.Time) string { return either(j.Dependency, "(null)") }},
	'a': {"ACCOUNT", func(*api.Job, time.Time) string { return "(null)" }},
	'q': {"QOS", func(*api.Job, time.Time) string { return "normal" }},
	'Q': {"PRIORITY", func(*api.Job, time.Time) string { return "1" }},
	'p': {"PRIORITY", func(*api.Job, time.Time) string { return "1" }},
	'k': {"COMMENT", func(*api.Job, time.Time) string { return "(null)" }},
	'v': {"RESERVATION", func(*api.Job, time.Time) string { return "(null)" }},
	'b': {"TRES_PER_NODE", func(*api.Job, time.Time) string { return "N/A" }},
	'f': {"FEATURES", func(*api.Job, time.Time) string { return "(null)" }},
	'h': {"OVER_SUBSCRIBE", func(*api.Job, time.Time) string { return "NO" }},
	'Y': {"SCHEDNODES", func(*api.Job, time.Time) string { return "(null)" }},
	'c': {"MIN_CPUS", func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors/max(j.Tasks, 1), 10) }},
	'd': {"MIN_TMP_DISK", func(*api.Job, time.Time) string { return "0" }},
	'g': {"GROUP", func(j *api.Job, _ time.Time) string { return ownerOf(j).group }},
	'G': {"GROUP", func(j *api.Job, _ time.Time) string { return ownerOf(j).gid }},
	'U': {"USER", func(j *api.Job, _ time.Time) string { return ownerOf(j).uid }},
	'H': {"SOCKETS_PER_NODE", func(*api.Job, time.Time) string { return "*" }},
	'I': {"CORES_PER_SOCKET", func(*api.Job, time.Time) string { return "*" }},
	'J': {"THREADS_PER_CORE", func(*api.Job, time.Time) string { return "*" }},
	'z': {"S:C:T", func(*api.Job, time.Time) string { return "*:*:*" }},
	'n': {"REQ_NODES", func(*api.Job, time.Time) string { return "" }},
	'x': {"EXC_NODES", func(*api.Job, time.Time) string { return "" }},
	'O': {"CONTIGUOUS", func(*api.Job, time.Time) string { return "0" }},
	's': {"SELECT_JOBINFO", func(*api.Job, time.Time) string { return "" }},
	'w': {"WCKEY", func(*api.Job, time.Time) string { return "(null)" }},
	'W': {"LICENSES", func(*api.Job, time.Time) string { return "(null)" }},
	'X': {"CORE_SPEC", func(*api.Job, time.Time) string { return "N/A" }},
	'y': {"NICE", func(j *api.Job, _ time.Time) string { return strconv.Itoa(int(j.Nice)) }},
}

// owner is who a job belongs to, by what this machine knows of accounts.
type owner struct{ uid, gid, group string }

var owners = make(map[string]owner) // by name: a listing has few

// ownerOf returns the account of a job's user; unknown ones are called so.
func ownerOf(j *api.Job) owner {
	o, known := owners[j.User]
	if !known {
		o = owner{"4294967294", "4294967294", "(null)"}
		if u, err := user.Lookup(j.User); err == nil {
			o.uid, o.gid, o.group = u.Uid, u.Gid, u.Gid
			if g, err := user.LookupGroupId(u.Gid); err == nil {
				o.group = g.Name
			}
		}
		owners[j.User] = o
	}
	return o
}

// queueMore are fields of squeue -O that have no letter.
var queueMore = map[string]column[*api.Job]{
	"cluster":      {"CLUSTER", func(j *api.Job, _ time.Time) string { return Partition(j) }},
	"exit_code":    {"EXIT_CODE", func(j *api.Job, _ time.Time) string { return strconv.Itoa(int(exitCode(j))) }},
	"deadline":     {"DEADLINE", func(j *api.Job, _ time.Time) string { return Instant(j.Deadline, "NONE") }},
	"eligibletime": {"ELIGIBLE_TIME", func(j *api.Job, _ time.Time) string { return Instant(max(j.Submitted, j.Begin), "N/A") }},
	"accruetime":   {"ACCRUE_TIME", func(j *api.Job, _ time.Time) string { return Instant(max(j.Submitted, j.Begin), "N/A") }},
	"pendingtime": {"PENDING_TIME", func(j *api.Job, now time.Time) string {
		until := now
		if j.Start != 0 {
			until = j.Start.Time()
		}
		return seconds(max(until.Sub(j.Submitted.Time()), 0))
	}},
	"cpus-per-task": {"CPUS_PER_TASK", func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors/max(j.Tasks, 1), 10) }},
	"numtasks":      {"TASKS", func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Tasks, 10) }},
	"restartcnt":    {"RESTART_COUNT", func(j *api.Job, _ time.Time) string { return strconv.Itoa(int(j.Restarts)) }},
	"requeue":       {"REQUEUE", func(*api.Job, time.Time) string { return "1" }},
	"batchflag":     {"BATCH_FLAG", func(*api.Job, time.Time) string { return "1" }},
	"stdout":        {"STDOUT", func(j *api.Job, _ time.Time) string { return j.Output }},
	"stderr":        {"STDERR", func(j *api.Job, _ time.Time) string { return either(j.Error, j.Output) }},
	"stdin":         {"STDIN", func(*api.Job, time.Time) string { return "/dev/null" }},
	"tres-alloc": {"TRES_ALLOC", func(j *api.Job, _ time.Time) string {
		return fmt.Sprintf("cpu=%d,node=1,billing=%d", j.Processors, j.Processors)
	}},
	"maxcpus":       {"MAX_CPUS", func(*api.Job, time.Time) string { return "0" }},
	"maxnodes":      {"MAX_NODES", func(*api.Job, time.Time) string { return "0" }},
	"mintime":       {"MIN_TIME", func(*api.Job, time.Time) string { return "N/A" }},
	"reboot":        {"REBOOT", func(*api.Job, time.Time) string { return "0" }},
	"allocnodes":    {"ALLOC_NODES", func(*api.Job, time.Time) string { return "N/A" }},
	"mcslabel":      {"MCSLABEL", func(*api.Job, time.Time) string { return "N/A" }},
	"lastschedeval": {"LAST_SCHED_EVAL", func(*api.Job, time.Time) string { return "N/A" }},
}

// queueNames are the fields of squeue -O by name: letters of the same, or columns of their own.
var queueNames = map[string]byte{
	"jobarrayid": 'i', "jobid": 'A', "arrayjobid": 'F', "arraytaskid": 'K', "name": 'j', "username": 'u', "statecompact": 't', "state": 'T',
	"timeused": 'M', "timelimit": 'l', "timeleft": 'L', "numnodes": 'D', "numcpus": 'C', "reasonlist": 'R', "nodelist": 'N',
	"batchhost": 'B', "partition": 'P', "reason": 'r', "submittime": 'V', "starttime": 'S', "endtime": 'e', "workdir": 'Z', "command": 'o',
	"minmemory": 'm', "dependency": 'E', "account": 'a', "qos": 'q', "priority": 'Q', "prioritylong": 'Q', "comment": 'k', "reservation": 'v', "feature": 'f',
	"userid": 'U', "groupname": 'g', "groupid": 'G', "mincpus": 'c', "mintmpdisk": 'd', "nice": 'y', "wckey": 'w', "licenses": 'W', "corespec": 'X',
	"reqnodes": 'n', "excnodes": 'x', "contiguous": 'O', "sct": 'z', "sockets": 'H', "cores": 'I', "threads": 'J', "schednodes": 'Y', "oversubscribe": 'h',
	"tres-per-node": 'b', "gres": 'b', "nodes": 'N', "selectjobinfo": 's', "batchost": 'B',
}

func exitCode(j *api.Job) int32 {
	if j.ExitCode == nil {
		return 0
	}
	return *j.ExitCode
}

func one(j *api.Job) uint64 {
	if j.ArrayIndex != nil {
		return 0
	}
	return j.Number
}

func index(j *api.Job) string {
	if j.ArrayIndex == nil {
		return "N/A"
	}
	return strconv.FormatInt(*j.ArrayIndex, 10)
}

func either(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

func nodeList(j *api.Job) string {
	if j.Start == 0 {
		return ""
	}
	return Partition(j)
}

// where is the site of a job that has started, or why it has not.
func where(j *api.Job) string {
	if s := StateOf(j); s == pending || s == configuring || s == failed || s == timeout {
		return "(" + Reason(j) + ")"
	}
	return nodeList(j)
}

func command(j *api.Job) string {
	if len(j.Args) == 0 {
		return ""
	}
	if len(j.Args) > 2 && j.Args[1] == "-c" && len(j.Args[2]) > 80 {
		return title(j) // a script
	}
	return strings.Join(strings.Fields(strings.Join(j.Args, " ")), " ")
}

func memory(j *api.Job) string {
	if j.MemoryPerProcessor == 0 {
		return "0"
	}
	return strconv.FormatInt(j.MemoryPerProcessor>>20, 10) + "M"
}

// field is one place of a format.
type field[T any] struct {
	before string // text that stands before it
	width  int    // 0: as wide as it is
	right  bool
	column column[T]
	text   bool // nothing but before
}

// Table is a listing in a format of the user.
type Table[T any] []field[T]

// parseFormat reads a format like "%.18i %j", whose letters stand for columns.
func parseFormat[T any](format string, letters map[byte]column[T]) (Table[T], error) {
	var t Table[T]
	for rest := format; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		f := field[T]{before: before}
		if !found {
			f.text = true
			return append(t, f), nil
		}
		after = strings.TrimPrefix(after, "#") // of sinfo: default partition
		if f.right = strings.HasPrefix(after, "."); f.right {
			after = after[1:]
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		f.width, _ = strconv.Atoi(after[:digits])
		if digits == len(after) {
			return nil, fmt.Errorf("format %q ends within a field", format)
		}
		column, known := letters[after[digits]]
		if !known {
			return nil, fmt.Errorf("format %q: %%%c is not known here", format, after[digits])
		}
		f.column = column
		t, rest = append(t, f), after[digits+1:]
	}
	return t, nil
}

// ParseQueue reads a format of squeue -o.
func ParseQueue(format string) (Table[*api.Job], error) { return parseFormat(format, queueLetters) }

// ParseQueueNames reads the fields of squeue -O: names with widths, separated by commas.
func ParseQueueNames(format string) (t Table[*api.Job], err error) {
	for part := range strings.SplitSeq(format, ",") {
		name, width, sized := strings.Cut(strings.TrimSpace(part), ":")
		name = strings.ToLower(name)
		letter, known := queueNames[name]
		column, more := queueMore[name]
		switch {
		case known:
			column = queueLetters[letter]
		case !more:
			return nil, fmt.Errorf("format %q: there is no field %s here", format, name)
		}
		f := field[*api.Job]{width: 20, column: column}
		if sized {
			f.right = strings.HasPrefix(width, ".")
			if f.width, err = strconv.Atoi(strings.Trim(width, ".- ")); err != nil {
				return nil, fmt.Errorf("format %q: %q is no width", format, width)
			}
		}
		t = append(t, f)
	}
	return t, nil
}

// Head returns the line of headings.
func (t Table[T]) Head() string {
	return t.line(func(c column[T]) string { return c.head })
}

// Line returns the line of one row.
func (t Table[T]) Line(row T, now time.Time) string {
	return t.line(func(c column[T]) string { return oneLine(c.text(row, now)) })
}

func (t Table[T]) line(text func(column[T]) string) string {
	var b strings.Builder
	for _, f := range t {
		b.WriteString(f.before)
		if f.text {
			continue
		}
		cell := text(f.column)
		switch runes := []rune(cell); {
		case f.width == 0:
		case len(runes) > f.width:
			cell = string(runes[:f.width])
		case f.right:
			cell = strings.Repeat(" ", f.width-len(runes)) + cell
		default:
			cell += strings.Repeat(" ", f.width-len(runes))
		}
		b.WriteString(cell)
	}
	return b.String()
}

// oneLine keeps a job's name or command from being taken for another line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
