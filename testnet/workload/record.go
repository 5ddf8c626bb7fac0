package workload

import "gridnode/grid"

// Unknown is the value of a field that the log does not have (-1 in the file).
const Unknown = -1

// Record is one line of a log. Every field may be Unknown. Times are spans
// except Submit, which counts from the log's own zero (the header's
// UnixStartTime in SWF; often the Unix epoch in GWF).
//
// Users, groups and the like are numbers in SWF. GWF allows words as well; a
// reader numbers the words of a file by first appearance, and Reader.Word has
// the word again.
type Record struct {
	Line int64 // of the file, from 1

	Number              int64     // job number (field 1)
	Submit              grid.Time // field 2
	Wait                grid.Time // from submission to start (field 3)
	RunTime             grid.Time // from start to end, by the wall clock (field 4)
	Processors          int64     // allocated (field 5)
	CPUTime             grid.Time // used, mean over the processors (field 6)
	Memory              int64     // bytes used, mean over the processors (field 7, in KiB there)
	ProcessorsRequested int64     // field 8
	TimeRequested       grid.Time // the user's estimate of the run time (field 9)
	MemoryRequested     int64     // bytes per processor (field 10, in KiB there)
	Status              int64     // 1 completed, 0 failed, 5 cancelled, others by log (field 11)
	User                int64     // field 12
	Group               int64     // field 13
	Executable          int64     // field 14
	Queue               int64     // field 15
	Partition           int64     // field 16

	// Fields 17 and 18 of SWF; Unknown in GWF.
	Preceding int64     // number of the job this one waited for
	ThinkTime grid.Time // between that job's end and this one's submission

	// Fields of GWF; Unknown in SWF.
	SiteOrigin   int64 // where the job was submitted (field 17)
	SiteLast     int64 // where it ran at last (field 18)
	Structure    int64 // UNITARY, BoT, ... (field 19)
	Network      int64 // used, in kB/s (field 21)
	Disk         int64 // used, in MB (field 22)
	Organisation int64 // virtual organisation (field 28)
	Project      int64 // field 29
}

// Format is one of the two ways in which logs of machines are published.
type Format uint8

const (
	// FormatUnknown is the format of a log without header, before its first job.
	FormatUnknown Format = iota
	// FormatSWF is the Standard Workload Format of the Parallel Workloads
	// Archive: 18 fields a line, header lines start with a semicolon.
	FormatSWF
	// FormatGWF is the Grid Workloads Format of the Grid Workloads Archive: 29
	// fields a line, header lines start with a number sign.
	FormatGWF
)

var formatNames = [...]string{"unknown", "SWF", "GWF"}

// String returns "SWF" or "GWF", and "unknown" for FormatUnknown.
func (f Format) String() string { return formatNames[f] }

// columns returns how the fields of a line are read.
func (f Format) columns() []column {
	if f == FormatGWF {
		return columns[:fieldsGWF]
	}
	return columnsSWF[:]
}

// Fields of a line.
const (
	fieldsSWF = 18
	fieldsGWF = 29
)

// column says how one field of a line is read.
type column struct {
	name string
	kind kind
	max  int64 // of the number as it stands in the file
	unit int64 // what is kept is the number times this
	need need
}

// need is what a Filter makes of a field.
type need uint8

const (
	unused   need = iota // nothing: whatever is wrong with it, the job is known
	used                 // a job is made of it
	identity             // and is known by it
)

// dispensable reports whether a field with a fault may be taken for unknown: one that
// no job is made of, or one below zero, which says nothing either. read is what number
// made of it.
func (c *column) dispensable(read int64) bool {
	return c.need == unused || c.need == used && read == Unknown
}

// needed marks a column as one that jobs are made of.
func (c column) needed(n need) column {
	c.need = n
	return c
}

type kind uint8

const (
	whole   kind = iota // integer; a fraction must be zero
	decimal             // number; kept down to the unit
	word                // word; kept as its number
	ignored             // anything; not kept
)

// Bounds of what a line may say. What is beyond them is a mistake, and would
// overflow a sum later on.
const (
	secondsMax    = int64(grid.SpanMax / grid.Second) // about 285 years
	processorsMax = 1 << 24                           // as on the wire
	kibiMax       = 1 << 40                           // a pebibyte per processor
	numberMax     = 1 << 40                           // identifiers and amounts
)

func timeColumn(name string) column {
	return column{name: name, kind: decimal, max: secondsMax, unit: int64(grid.Second)}
}
func memoryColumn(name string) column {
	return column{name: name, kind: decimal, max: kibiMax, unit: 1 << 10}
}
func amountColumn(name string) column {
	return column{name: name, kind: decimal, max: numberMax, unit: 1}
}
func numberColumn(name string) column {
	return column{name: name, kind: whole, max: numberMax, unit: 1}
}
func processorColumn(name string) column {
	return column{name: name, kind: whole, max: processorsMax, unit: 1}
}
func wordColumn(name string) column    { return column{name: name, kind: word} }
func ignoredColumn(name string) column { return column{name: name, kind: ignored} }

// columns are the fields of GWF. SWF has the same first sixteen (GWF was made
// from it), with numbers where GWF allows words.
var columns = [fieldsGWF]column{
	numberColumn("job number").needed(identity),
	timeColumn("submit time").needed(used),
	timeColumn("wait time"),
	timeColumn("run time").needed(used),
	processorColumn("allocated processors").needed(used),
	timeColumn("average CPU time"),
	memoryColumn("used memory"),
	processorColumn("requested processors").needed(used),
	timeColumn("requested time").needed(used),
	memoryColumn("requested memory").needed(used),
	numberColumn("status"),
	wordColumn("user"),
	wordColumn("group"),
	wordColumn("executable"),
	wordColumn("queue"),
	wordColumn("partition"),
	wordColumn("origin site"),
	wordColumn("last run site"),
	wordColumn("job structure"),
	// The parameters of the structure may differ from job to job, so numbering
	// them would keep the whole column in memory.
	ignoredColumn("job structure parameters"),
	amountColumn("used network"),
	amountColumn("used local disk space"),
	ignoredColumn("used resources"),
	ignoredColumn("requested platform"),
	ignoredColumn("requested network"),
	ignoredColumn("requested local disk space"),
	ignoredColumn("requested resources"),
	wordColumn("virtual organisation"),
	wordColumn("project"),
}

var columnsSWF = func() (swf [fieldsSWF]column) {
	copy(swf[:], columns[:16])
	for i := range swf {
		if swf[i].kind == word {
			swf[i] = numberColumn(swf[i].name)
		}
	}
	swf[16] = numberColumn("preceding job")
	swf[17] = timeColumn("think time")
	return swf
}()

// record makes a record from the fields of a line, times already in
// microseconds and memory in bytes.
func (f Format) record(line int64, v *[fieldsGWF]int64) Record {
	r := Record{
		Line:                line,
		Number:              v[0],
		Submit:              grid.Time(v[1]),
		Wait:                grid.Time(v[2]),
		RunTime:             grid.Time(v[3]),
		Processors:          v[4],
		CPUTime:             grid.Time(v[5]),
		Memory:              v[6],
		ProcessorsRequested: v[7],
		TimeRequested:       grid.Time(v[8]),
		MemoryRequested:     v[9],
		Status:              v[10],
		User:                v[11],
		Group:               v[12],
		Executable:          v[13],
		Queue:               v[14],
		Partition:           v[15],
		Preceding:           Unknown, ThinkTime: Unknown,
		SiteOrigin: Unknown, SiteLast: Unknown, Structure: Unknown,
		Network: Unknown, Disk: Unknown, Organisation: Unknown, Project: Unknown,
	}
	if f == FormatSWF {
		r.Preceding, r.ThinkTime = v[16], grid.Time(v[17])
		return r
	}
	r.SiteOrigin, r.SiteLast, r.Structure = v[16], v[17], v[18]
	r.Network, r.Disk = v[20], v[21]
	r.Organisation, r.Project = v[27], v[28]
	return r
}
