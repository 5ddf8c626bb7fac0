package wire

import (
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Bounds of a job on the wire and in the store.
const (
	siteIDMax     = 128
	userMax       = 64
	nameMax       = 128
	reasonMax     = 256
	commandMax    = 48 << 10
	processorsMax = 1 << 24
)

// JobProto returns the wire form of j.
func JobProto(j *grid.Job) *wirepb.Job {
	id := j.ID.Bytes()
	p := &wirepb.Job{
		Id: id[:], Home: string(j.Home), User: []byte(j.User), Name: []byte(j.Name),
		Processors: j.Processors, Memory: j.Memory, Tasks: j.Tasks,
		Submit: int64(j.Submit), Estimate: int64(j.Estimate),
		Instructions: j.Work.Instructions, Traffic: j.Work.Traffic,
		Budget: int64(j.Budget), Goal: uint32(j.Goal), Site: string(j.Site),
		RunTime: int64(j.RunTime), Coallocation: coallocationProto(j.Coallocate), Inputs: inputsProto(j.Inputs),
		Spread: j.Spread, Ttl: j.TTL, Number: j.Number, Restarts: j.Restarts, Array: arrayProto(j.Array), Terms: termsProto(j.Terms), Gpus: j.GPUs.Count, GpuType: j.GPUs.Type,
	}
	if j.Deadline != grid.Never {
		p.Deadline = int64(j.Deadline)
	}
	if c := j.Command; c != nil {
		p.Command = &wirepb.Command{Args: toBytes(c.Args), Env: toBytes(c.Env), Dir: []byte(c.Dir), Module: moduleProto(c.Module), Files: filesProto(c.Files), Output: []byte(c.Output), Error: []byte(c.Error), Append: c.Append, Terminal: c.Terminal, Each: c.Each}
	}
	return p
}

// JobAbroad returns the wire form of a job without what only its home is to know.
func JobAbroad(j *grid.Job) *wirepb.Job {
	p := JobProto(j)
	if p.Terms != nil {
		p.Terms.Notify = nil
	}
	return p
}

// JobFromProto checks p against every bound and returns the job, or an error
// wrapping ErrMalformed. Nobody else needs to check a job that came from it.
func JobFromProto(p *wirepb.Job) (*grid.Job, error) {
	if p == nil {
		return nil, Malformed("no job")
	}
	id, err := grid.JobIDFromBytes(p.Id)
	if err != nil || id.IsZero() {
		return nil, Malformed("job id of %d bytes", len(p.Id))
	}
	j := &grid.Job{
		ID: id, Home: grid.SiteID(p.Home), User: string(p.User), Name: string(p.Name),
		Resources: grid.Resources{Processors: p.Processors, Memory: p.Memory}, Tasks: p.Tasks,
		Submit: grid.Time(p.Submit), Estimate: grid.Time(p.Estimate),
		Work:     grid.Work{Instructions: p.Instructions, Traffic: p.Traffic},
		Deadline: grid.Never, Budget: grid.Credits(p.Budget), Goal: grid.Goal(p.Goal),
		Site: grid.SiteID(p.Site), RunTime: grid.Time(p.RunTime), Coallocate: coallocationFromProto(p.Coallocation), Inputs: inputsFromProto(p.Inputs),
		Spread: p.Spread, TTL: p.Ttl, Number: p.Number, Restarts: p.Restarts, GPUs: grid.GPUs{Type: p.GpuType, Count: p.Gpus},
	}
	if j.Array, err = arrayFromProto(p.Array); err != nil {
		return nil, err
	}
	if j.Terms, err = termsFromProto(p.Terms); err != nil {
		return nil, err
	}
	if p.Deadline != 0 {
		j.Deadline = grid.Time(p.Deadline)
	}
	if c := p.Command; c != nil {
		j.Command = &grid.Command{Args: toStrings(c.Args), Env: toStrings(c.Env), Dir: string(c.Dir), Module: moduleFromProto(c.Module), Files: filesFromProto(c.Files), Output: string(c.Output), Error: string(c.Error), Append: c.Append, Terminal: c.Terminal, Each: c.Each}
	}
	return j, CheckJob(j)
}

// CheckJob returns an error wrapping ErrMalformed that names the first field of j
// that is out of bounds. Homes check what users submit with it, too.
func CheckJob(j *grid.Job) error {
	switch {
	case j.ID.IsZero():
		return Malformed("job without an id")
	case len(j.Home) == 0 || len(j.Home) > siteIDMax:
		return Malformed("job's home of %d bytes, want 1 to %d", len(j.Home), siteIDMax)
	case len(j.Site) > siteIDMax:
		return Malformed("job's site of %d bytes, at most %d", len(j.Site), siteIDMax)
	case len(j.User) > userMax:
		return Malformed("job's user of %d bytes, at most %d", len(j.User), userMax)
	case len(j.Name) > nameMax:
		return Malformed("job's name of %d bytes, at most %d", len(j.Name), nameMax)
	case j.Processors < 1 || j.Processors > processorsMax:
		return Malformed("%d processors, want 1 to %d", j.Processors, processorsMax)
	case j.Tasks < 1 || j.Tasks > j.Processors || j.Processors%j.Tasks != 0:
		return Malformed("%d tasks on %d processors", j.Tasks, j.Processors)
	case j.Memory < 0 || j.Memory > 1<<50:
		return Malformed("%d bytes of memory per processor", j.Memory)
	case j.Submit < 0 || j.Submit > grid.SpanMax:
		return Malformed("submission at %d µs", int64(j.Submit))
	case j.Estimate < 1 || j.Estimate > grid.SpanMax:
		return Malformed("run-time estimate of %d µs", int64(j.Estimate))
	case j.Work.Instructions < 0 || j.Work.Traffic < 0:
		return Malformed("negative work")
	case j.Deadline != grid.Never && (j.Deadline < 0 || j.Deadline > grid.SpanMax):
		return Malformed("deadline at %d µs", int64(j.Deadline))
	case j.Budget < grid.NoBudget || j.Budget > grid.CreditsMax:
		return Malformed("budget of %d micro-credits", int64(j.Budget))
	case j.Goal > grid.GoalSpill:
		return Malformed("goal %d", j.Goal)
	case j.TTL < grid.NoTTL || j.TTL > grid.TTLMax:
		return Malformed("requests that may be delegated %d times, at most %d", j.TTL, grid.TTLMax)
	case j.Restarts < 0:
		return Malformed("restarted %d times", j.Restarts)
	case j.RunTime < 0:
		return Malformed("negative run time")
	}
	if err := checkCoallocation(j.Coallocate); err != nil {
		return err
	}
	for _, err := range []error{grid.CheckInputs(j.Inputs), j.Array.Check(), j.Terms.Check()} {
		if err != nil {
			return Malformed("%v", err)
		}
	}
	if err := j.GPUs.Check(); err != nil {
		return Malformed("%v", err)
	}
	if j.GPUs.Count > 0 && (j.Coallocate != nil || j.Spread || j.IsModule()) {
		return Malformed("GPUs for a job that runs at several sites, or a module")
	}
	if err := checkModule(j); err != nil {
		return err
	}
	return checkCommand(j.Command)
}

func checkCommand(c *grid.Command) error {
	if c == nil {
		return nil
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		return Malformed("command without a program")
	}
	if err := c.Files.Check(); err != nil {
		return Malformed("%v", err)
	}
	size := len(c.Dir) + len(c.Output) + len(c.Error)
	var out []string
	if c.Files != nil {
		size += len(c.Files.Dir) + len(c.Files.Stdin)
		out = c.Files.Out
	}
	for _, list := range [][]string{c.Args, c.Env, out} {
		for _, s := range list {
			size += len(s) + 4
			for i := range len(s) {
				if s[i] == 0 {
					return Malformed("command holds a NUL byte")
				}
			}
		}
	}
	if size > commandMax {
		return Malformed("command of %d bytes, at most %d", size, commandMax)
	}
	return nil
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// ResultProto returns the wire form of r.
func ResultProto(r grid.Result) *wirepb.Result {
	return &wirepb.Result{Start: int64(r.Start), End: int64(r.End), ExitCode: r.ExitCode, Reason: []byte(r.Reason), Cost: int64(r.Cost), Silent: r.Silent, Stdout: KeptProto(r.Output[0]), Stderr: KeptProto(r.Output[1])}
}

// ResultFromProto checks p and returns the result, or an error wrapping ErrMalformed.
func ResultFromProto(p *wirepb.Result) (grid.Result, error) {
	if p == nil {
		return grid.Result{}, Malformed("no result")
	}
	r := grid.Result{Start: grid.Time(p.Start), End: grid.Time(p.End), ExitCode: p.ExitCode, Reason: string(p.Reason), Cost: grid.Credits(p.Cost), Silent: p.Silent}
	switch {
	case r.Start < 0 || r.End < r.Start || r.End > grid.SpanMax:
		return grid.Result{}, Malformed("execution from %d to %d µs", p.Start, p.End)
	case len(r.Reason) > reasonMax:
		return grid.Result{}, Malformed("reason of %d bytes, at most %d", len(r.Reason), reasonMax)
	case r.Cost < 0 || r.Cost > grid.CreditsMax:
		return grid.Result{}, Malformed("cost of %d micro-credits", p.Cost)
	}
	for i, p := range []*wirepb.Kept{p.Stdout, p.Stderr} {
		var err error
		if r.Output[i], err = KeptFromProto(p); err != nil {
			return grid.Result{}, err
		}
	}
	return r, nil
}

// KeptProto returns the wire form of k: nil if there is nothing to say.
func KeptProto(k grid.Kept) *wirepb.Kept {
	if k == (grid.Kept{}) {
		return nil
	}
	return &wirepb.Kept{Size: k.Size, Sum: k.Sum[:]}
}

// KeptFromProto checks p, which may be nil, and returns what it says, or an error wrapping ErrMalformed.
func KeptFromProto(p *wirepb.Kept) (k grid.Kept, err error) {
	if p == nil {
		return k, nil
	}
	if p.Size < 0 || len(p.Sum) != len(k.Sum) {
		return k, Malformed("output of %d bytes with a sum of %d", p.Size, len(p.Sum))
	}
	return grid.Kept{Size: p.Size, Sum: [16]byte(p.Sum)}, nil
}

func inputsProto(inputs []grid.DataSet) []*wirepb.DataSet {
	var list []*wirepb.DataSet
	for i := range inputs {
		list = append(list, &wirepb.DataSet{Name: inputs[i].Name, Size: inputs[i].Size})
	}
	return list
}

func inputsFromProto(list []*wirepb.DataSet) []grid.DataSet {
	var inputs []grid.DataSet
	for _, p := range list {
		inputs = append(inputs, grid.DataSet{Name: p.Name, Size: p.Size})
	}
	return inputs
}
