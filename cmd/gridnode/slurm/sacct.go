package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridnode/node/api"
)

// AccountFormat is sacct's own list of fields, and BriefFormat that of sacct -b.
const (
	AccountFormat = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
	BriefFormat   = "JobID,State,ExitCode"
)

// accountField is a field of sacct.
type accountField struct {
	name  string
	width int
	text  func(j *api.Job, now time.Time) string
}

// accountFields are all of them.
var accountFields = append(meantFields, blankFieldsOf()...)

// meantFields are those that have a meaning here.
var meantFields = []accountField{
	{"Account", 10, blank},
	{"AllocCPUS", 10, func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors, 10) }},
	{"AllocNodes", 10, func(*api.Job, time.Time) string { return "1" }},
	{"AllocTRES", 10, func(j *api.Job, _ time.Time) string { return fmt.Sprintf("cpu=%d,node=1", j.Processors) }},
	{"Cluster", 10, func(j *api.Job, _ time.Time) string { return Partition(j) }},
	{"Comment", 14, blank},
	{"CPUTimeRAW", 10, func(j *api.Job, now time.Time) string { return seconds(Elapsed(j, now) * time.Duration(j.Processors)) }},
	{"CPUTime", 10, func(j *api.Job, now time.Time) string { return LongSpan(Elapsed(j, now) * time.Duration(j.Processors)) }},
	{"DerivedExitCode", 15, func(j *api.Job, _ time.Time) string { return ExitCode(j) }},
	{"ElapsedRaw", 10, func(j *api.Job, now time.Time) string { return seconds(Elapsed(j, now)) }},
	{"Elapsed", 10, func(j *api.Job, now time.Time) string { return LongSpan(Elapsed(j, now)) }},
	{"Eligible", 19, func(j *api.Job, _ time.Time) string { return Instant(max(j.Submitted, j.Begin), "Unknown") }},
	{"End", 19, func(j *api.Job, _ time.Time) string { return Instant(j.End, "Unknown") }},
	{"ExitCode", 8, func(j *api.Job, _ time.Time) string { return ExitCode(j) }},
	{"GID", 6, func(j *api.Job, _ time.Time) string { return ownerOf(j).gid }},
	{"Group", 9, func(j *api.Job, _ time.Time) string { return ownerOf(j).group }},
	{"JobIDRaw", 12, func(j *api.Job, _ time.Time) string { return strconv.FormatUint(j.Number, 10) }},
	{"JobID", 12, func(j *api.Job, _ time.Time) string { return ID(j) }},
	{"JobName", 10, func(j *api.Job, _ time.Time) string { return title(j) }},
	{"MaxRSS", 10, blank},
	{"MaxVMSize", 10, blank},
	{"NCPUS", 10, func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors, 10) }},
	{"NNodes", 8, func(*api.Job, time.Time) string { return "1" }},
	{"NTasks", 8, func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Tasks, 10) }},
	{"NodeList", 15, func(j *api.Job, _ time.Time) string { return either(nodeList(j), "None assigned") }},
	{"Partition", 10, func(j *api.Job, _ time.Time) string { return Partition(j) }},
	{"Priority", 10, func(*api.Job, time.Time) string { return "1" }},
	{"QOS", 10, func(*api.Job, time.Time) string { return "normal" }},
	{"Reason", 22, func(j *api.Job, _ time.Time) string { return Reason(j) }},
	{"ReqCPUS", 8, func(j *api.Job, _ time.Time) string { return strconv.FormatInt(j.Processors, 10) }},
	{"ReqMem", 10, func(j *api.Job, _ time.Time) string { return memory(j) }},
	{"ReqNodes", 8, func(*api.Job, time.Time) string { return "1" }},
	{"ReqTRES", 10, func(j *api.Job, _ time.Time) string { return fmt.Sprintf("cpu=%d,node=1", j.Processors) }},
	{"QOSRAW", 10, func(*api.Job, time.Time) string { return "1" }},
	{"Planned", 10, func(j *api.Job, now time.Time) string { return LongSpan(waited(j, now)) }},
	{"Reserved", 10, func(j *api.Job, now time.Time) string { return LongSpan(waited(j, now)) }},
	{"ResvCPU", 10, func(j *api.Job, now time.Time) string { return LongSpan(waited(j, now) * time.Duration(j.Processors)) }},
	{"ResvCPURAW", 10, func(j *api.Job, now time.Time) string { return seconds(waited(j, now) * time.Duration(j.Processors)) }},
	{"Restarts", 8, func(j *api.Job, _ time.Time) string { return strconv.Itoa(int(j.Restarts)) }},
	{"Start", 19, func(j *api.Job, _ time.Time) string { return Instant(j.Start, "Unknown") }},
	{"State", 10, func(j *api.Job, _ time.Time) string { return StateOf(j).Name }},
	{"Submit", 19, func(j *api.Job, _ time.Time) string { return Instant(j.Submitted, "Unknown") }},
	{"TimelimitRaw", 12, func(j *api.Job, _ time.Time) string { return strconv.FormatInt(int64(limit(j)/time.Minute), 10) }},
	{"Timelimit", 10, func(j *api.Job, _ time.Time) string { return LongSpan(limit(j)) }},
	{"TotalCPU", 10, blank},
	{"UID", 6, func(j *api.Job, _ time.Time) string { return ownerOf(j).uid }},
	{"User", 9, func(j *api.Job, _ time.Time) string { return j.User }},
	{"WorkDir", 20, func(j *api.Job, _ time.Time) string { return j.Dir }},
}

// blankFields are those that sacct has and nobody here counts: they are empty.
const blankFields = `
	AdminComment AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS
	AveVMSize BlockID Constraints ConsumedEnergy ConsumedEnergyRaw Container DBIndex Flags
	Layout MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask MaxPages
	MaxPagesNode MaxPagesTask MaxRSSNode MaxRSSTask MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU
	MinCPUNode MinCPUTask ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin Reservation ReservationId
	SubmitLine Suspended SystemComment SystemCPU TRESUsageInAve TRESUsageInMax TRESUsageInTot TRESUsageOutAve
	TRESUsageOutMax TRESUsageOutTot UserCPU WCKey WCKeyID`

func blankFieldsOf() (fields []accountField) {
	for name := range strings.FieldsSeq(blankFields) {
		fields = append(fields, accountField{name, 10, blank})
	}
	return fields
}

func blank(*api.Job, time.Time) string { return "" }

// waited returns how long a job has waited since it might have begun.
func waited(j *api.Job, now time.Time) time.Duration {
	if j.Start != 0 {
		now = j.Start.Time()
	}
	return max(now.Sub(max(j.Submitted, j.Begin).Time()), 0)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// Account is a listing of sacct.
type Account struct {
	columns []accountColumn
	Between string // parsable: what stands between fields; empty: columns of fixed width
	Closed  bool   // and behind the last
}

type accountColumn struct {
	field int // of accountFields
	width int
	left  bool
}

// ParseAccount reads the fields of sacct --format, names with widths: State%20,JobID%-12.
func ParseAccount(format string) (*Account, error) {
	a := new(Account)
	for part := range strings.SplitSeq(format, ",") {
		if part == "" {
			continue
		}
		name, width, sized := strings.Cut(part, "%")
		at := slices.IndexFunc(accountFields, func(f accountField) bool { return strings.EqualFold(f.name, name) })
		if at < 0 {
			return nil, fmt.Errorf("invalid field requested: %q", name)
		}
		c := accountColumn{field: at, width: accountFields[at].width, left: strings.EqualFold(name, "JobID")}
		if sized {
			n, err := strconv.Atoi(width)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("%q: %q is no width", part, width)
			}
			c.width, c.left = max(n, -n), n < 0
		}
		a.columns = append(a.columns, c)
	}
	return a, nil
}

// Head returns the lines of headings.
func (a *Account) Head() []string {
	head := a.join(func(c accountColumn) string { return accountFields[c.field].name })
	if a.Between != "" {
		return []string{head}
	}
	rule := a.join(func(c accountColumn) string { return strings.Repeat("-", c.width) })
	return []string{head, rule}
}

// Line returns the line of a job, or of its step of a name.
func (a *Account) Line(j *api.Job, step string, now time.Time) string {
	return a.join(func(c accountColumn) string {
		f := &accountFields[c.field]
		text := oneLine(f.text(j, now))
		switch {
		case step == "":
		case f.name == "JobID", f.name == "JobIDRaw":
			text += "." + step
		case f.name == "JobName":
			text = step
		case f.name == "Partition", f.name == "User", f.name == "QOS", f.name == "Timelimit", f.name == "WorkDir":
			text = ""
		}
		return text
	})
}

func (a *Account) join(text func(accountColumn) string) string {
	var cells []string
	for _, c := range a.columns {
		cell := text(c)
		if a.Between == "" {
			if n := len([]rune(cell)); n > c.width {
				cell = string([]rune(cell)[:c.width-1]) + "+"
			}
			format := "%*s"
			if c.left {
				format = "%-*s"
			}
			cell = fmt.Sprintf(format, c.width, cell)
		}
		cells = append(cells, cell)
	}
	switch {
	case a.Between == "":
		return strings.Join(cells, " ") + " "
	case a.Closed:
		return strings.Join(cells, a.Between) + a.Between
	}
	return strings.Join(cells, a.Between)
}

// AccountFields returns the names of sacct's fields.
func AccountFields() (names []string) {
	for _, f := range accountFields {
		names = append(names, f.name)
	}
	return names
}
