package slurm

import (
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/lrms/others"
	"gridnode/node/shim"
)

const second = grid.Second

// at is an instant of the recorded day, by its time in UTC.
func at(clock string) grid.Time { return instant("2026-11-22T" + clock) }

func TestParseQueue(t *testing.T) {
	jobs, err := parseQueue("2|PENDING|16|2026-11-22T16:57:05|2026-11-22T16:58:05|Resources|wrap\n" +
		"77_[1-1000%5]|PENDING|1|N/A|N/A|Priority|an|odd name\n" +
		"1|RUNNING|3|2026-11-22T16:47:05|2026-11-22T16:57:05|None|gridnode-x.1.abc\n" +
		"9|COMPLETING|3|2026-11-22T16:47:05|2026-11-22T16:47:09|None|y\n" +
		"10|SOMETHING_NEW|3|Unknown|NONE|None|z\n" +
		"11|PENDING|1|3047-01-01T00:00:00|NONE|None|later\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []listed{
		{"2", Waiting, 16, at("16:57:05"), at("16:58:05"), "Resources", "wrap"},
		{"77_[1-1000%5]", Waiting, 1, grid.Never, grid.Never, "Priority", "an|odd name"},
		{"1", Running, 3, at("16:47:05"), at("16:57:05"), "None", "gridnode-x.1.abc"},
		{"9", Ending, 3, at("16:47:05"), at("16:47:09"), "None", "y"},
		{"10", Unknown, 3, grid.Never, grid.Never, "None", "z"},
		{"11", Waiting, 1, grid.Never, grid.Never, "None", "later"},
	}
	if !slices.Equal(jobs, want) {
		t.Errorf("got  %+v\nwant %+v", jobs, want)
	}
	for _, bad := range []string{"2|PENDING|16", "2|PENDING|x|NONE|NONE|None|n", "|RUNNING|1|NONE|NONE|None|n", "slurm_load_jobs error: Unexpected message received\n"} {
		if jobs, err := parseQueue(bad); err == nil {
			t.Errorf("%q gives %+v", bad, jobs)
		}
	}
}

// What scontrol -o show job prints: recorded from 22.05; of 23.02 and 24.11, whose lines have
// more keys and others' order, written by hand in their form: none of them ran here.
func TestParseShow(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       shown
	}{
		{"22.05, failed", "JobId=1 JobName=gn-test UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 Account=root QOS=normal JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=3:0 RunTime=00:00:04 TimeLimit=00:10:00 TimeMin=N/A SubmitTime=2026-11-22T16:47:05 EligibleTime=2026-11-22T16:47:05 AccrueTime=2026-11-22T16:47:05 StartTime=2026-11-22T16:47:05 EndTime=2026-11-22T16:47:09 Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-22T16:47:05 Scheduler=Main Partition=main AllocNode:Sid=b1:13046 ReqNodeList=(null) ExcNodeList=(null) NodeList=b1 BatchHost=b1 NumNodes=1 NumCPUs=3 NumTasks=3 CPUs/Task=1 WorkDir=/srv/a b Comment=JobState=COMPLETED ExitCode=0:0 Power= \n",
			shown{name: "gn-test", state: Failed, exit: 3, start: at("16:47:05"), end: at("16:47:09"), reason: "NonZeroExitCode", node: "b1"}},
		{"22.05, cancelled", "JobId=6 JobName=wrap JobState=CANCELLED Reason=None ExitCode=0:15 StartTime=2026-11-22T16:47:06 EndTime=2026-11-22T16:47:07 NodeList=b1 BatchHost=b1",
			shown{name: "wrap", state: Cancelled, signal: 15, start: at("16:47:06"), end: at("16:47:07"), reason: "None", node: "b1"}},
		{"23.02, pending", "JobId=4 JobName=wrap UserId=u(1000) GroupId=u(1000) MCS_label=N/A Priority=1 Nice=0 Account=(null) QOS=(null) JobState=PENDING Reason=Resources Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=UNLIMITED SubmitTime=2026-11-22T16:47:05 StartTime=Unknown EndTime=Unknown Deadline=N/A ReqTRES=cpu=1,mem=1M,node=1,billing=1 AllocTRES=(null)",
			shown{name: "wrap", state: Waiting, start: grid.Never, end: grid.Never, reason: "Resources"}},
		{"24.11, out of memory", "JobId=8 JobName=x UserId=u(1000) Account=a QOS=q JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:125 RunTime=00:00:02 TimeLimit=00:01:00 StartTime=2026-11-22T16:47:05 EndTime=2026-11-22T16:47:07 Deadline=N/A SuspendTime=None SecsPreSuspend=0 BatchHost=n7 StepMgrEnabled=Yes OOMKillStep=0",
			shown{name: "x", state: OutOfMemory, signal: 125, start: at("16:47:05"), end: at("16:47:07"), reason: "OutOfMemory", node: "n7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := parseShow(tt.line); err != nil || got != tt.want {
				t.Errorf("got  %+v (%v)\nwant %+v", got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{"", "No jobs in the system", "JobId=1 JobState=RUNNING", "JobId=1 JobState=FAILED ExitCode=3"} {
		if got, err := parseShow(bad); err == nil {
			t.Errorf("%q gives %+v", bad, got)
		}
	}
}

func TestParseAccount(t *testing.T) {
	text := "6|CANCELLED by 0|0:0|2026-11-22T16:47:06|2026-11-22T16:47:07|b1|00:00.001||gridnode-1|2\n6.batch|CANCELLED|0:15|2026-11-22T16:47:06|2026-11-22T16:47:07|b1|00:00.001|3108K|batch\n"
	got, found, err := parseAccount(text, "6")
	want := shown{name: "gridnode-1|2", state: Cancelled, start: at("16:47:06"), end: at("16:47:07"), node: "b1", user: 1000, top: 3108 << 10}
	if err != nil || !found || got != want {
		t.Errorf("got  %+v (%t, %v)\nwant %+v", got, found, err, want)
	}
	if _, found, err := parseAccount("", "6"); found || err != nil {
		t.Errorf("of nothing: %t, %v", found, err)
	}
	if _, _, err := parseAccount("sacct: error\n", "6"); err == nil {
		t.Error("took a complaint for a job")
	}
	for text, want := range map[string]int64{"00:00.002": 2000, "01:02:03": int64(3723 * second), "2-00:00:01": int64(2*grid.Day + second), "": 0, "x": 0} {
		if got := span(text); got != want {
			t.Errorf("span(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestParseCountsAndForetold(t *testing.T) {
	if c, err := parseCounts("3/13/0/16\n0/4/1.5K/1504\n"); err != nil || c != (counts{3, 17, 1500, 1520}) {
		t.Errorf("got %+v (%v)", c, err)
	}
	for _, bad := range []string{"", "a/b/c/d", "1/2/3", "-1/0/0/0"} {
		if c, err := parseCounts(bad); err == nil {
			t.Errorf("%q gives %+v", bad, c)
		}
	}
	now := at("16:47:05")
	for _, tt := range []struct {
		text string
		want grid.Time
		ok   bool
	}{
		{"sbatch: Job 3 to start at 2026-11-22T16:53:05 using 2 processors on nodes b1 in partition main", at("16:53:05"), true},
		{"sbatch: Job 3 to start at 3047-03-01T00:00:00 using 2 processors on nodes b1 in partition main", grid.Never, false},
		{"allocation failure: More processors requested than permitted", grid.Never, false},
	} {
		if got, ok := parseForetold(tt.text, now); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %v, %t", tt.text, got, ok)
		}
	}
	for text, want := range map[string]string{"12\n": "12", "12;alpha\n": "12", "note of a plugin\n13\n": "13", "": "", "12x": ""} {
		if id, err := parseSubmitted(text); id != want || (err == nil) != (want != "") {
			t.Errorf("parseSubmitted(%q) = %q, %v", text, id, err)
		}
	}
}

func TestHowAJobEnded(t *testing.T) {
	start, end := at("16:47:05"), at("16:47:09")
	by := func(cause shim.Cause, code int32, reason string) *shim.Ended {
		return &shim.Ended{ID: "x", Cause: cause, ExitCode: code, Reason: reason, Start: start + 100*grid.Millisecond, End: end - second/2}
	}
	for _, tt := range []struct {
		name   string
		state  State
		exit   int32
		end    *shim.Ended
		began  bool
		wanted string
		code   int32
		reason string // part of it; empty: none
		lost   bool
	}{
		{"by itself", Completed, 0, by(shim.CauseExit, 0, ""), true, "", 0, "", false},
		{"with a code", Failed, 3, by(shim.CauseExit, 3, ""), true, "", 3, "", false},
		{"by a signal", Failed, 139, by(shim.CauseSignal, 139, "ended by signal 11"), true, "", 139, "signal 11", false},
		{"at the shim's limit", Failed, 143, by(shim.CauseLimit, 143, "limit"), true, "", 143, "limit", false},
		{"at Slurm's limit", TimedOut, 0, by(shim.CauseKill, 143, "the shim was stopped"), true, "", 143, "TIMEOUT", false},
		{"at Slurm's limit, without a word", TimedOut, 0, nil, true, "", 143, "TIMEOUT", false},
		{"memory", OutOfMemory, 0, nil, true, "", 137, "OUT_OF_MEMORY", false},
		{"node", NodeFailed, 0, nil, true, "", 0, "NODE_FAIL", true},
		{"node, after its end", NodeFailed, 0, by(shim.CauseExit, 2, ""), true, "", 2, "", false},
		{"preempted", Preempted, 0, by(shim.CauseKill, 143, "the shim was stopped"), true, "", 143, "PREEMPTED", true},
		{"requeued", Requeued, 0, nil, true, "", 0, "REQUEUED", true},
		{"elsewhere", Elsewhere, 0, nil, false, "", 0, "REVOKED", true},
		{"cancelled there", Cancelled, 0, by(shim.CauseKill, 143, "the shim was stopped"), true, "", 143, "cancelled in Slurm", false},
		{"could not be started", Cancelled, 0, nil, false, "", 0, "could not start it", true},
		{"cancelled here", Cancelled, 0, nil, true, "enough", 143, "enough", false},
		{"workdir not visible", Failed, 1, nil, false, "", 1, "slurm.workdir", false},
		{"workdir not visible, 0", Completed, 0, nil, false, "", 125, "slurm.workdir", false},
		{"disk full", Completed, 0, nil, true, "", 0, "", false},
		{"disk full, with a code", Failed, 3, nil, true, "", 3, "", false},
		{"a run that follows one that was killed", Failed, 125, nil, true, "", 125, "shim", true},
		{"memory of what its shell waits for", OutOfMemory, 0, by(shim.CauseExit, 137, ""), true, "", 137, "OUT_OF_MEMORY", false},
		{"put back, and so what its shell waits for", Requeued, 0, by(shim.CauseExit, 143, ""), true, "", 143, "REQUEUED", true},
		{"preempted, and so what its shell waits for", Preempted, 0, by(shim.CauseExit, 143, ""), true, "", 143, "PREEMPTED", true},
		{"put back as it ended", Requeued, 0, by(shim.CauseExit, 2, ""), true, "", 2, "", false},
		{"shim killed", Failed, 137, nil, true, "", 137, "shim", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := settle(&shown{state: tt.state, exit: tt.exit, start: start, end: end, node: "n1"}, tt.end, tt.began, tt.wanted)
			if o.ExitCode != tt.code || o.Lost != tt.lost || (o.Reason == "") != (tt.reason == "") || !strings.Contains(o.Reason, tt.reason) {
				t.Errorf("got %+v", o)
			}
			if o.Start < start || o.End > end || o.End <= o.Start {
				t.Errorf("from %v to %v", o.Start, o.End)
			}
		})
	}
}

// TestTimesOfWhatRan: what began has taken some time, whatever clocks were set to meanwhile: of what ends
// as it begins nobody asks for the output.
func TestTimesOfWhatRan(t *testing.T) {
	const ordered, second = 1000 * grid.Second, grid.Second
	for _, tt := range []struct {
		name              string
		cause             shim.Cause
		begins, ends, now grid.Time
		start, end        grid.Time
	}{
		{"as usual", shim.CauseExit, 5 * second, 7 * second, 8 * second, 5 * second, 7 * second},
		{"the node's clock was set back", shim.CauseExit, 5 * second, 3 * second, 8 * second, 5 * second, 5*second + 1},
		{"it could not be started", shim.CauseStart, 5 * second, 5 * second, 8 * second, 5 * second, 5 * second},
		{"the node's clock is another", shim.CauseExit, grid.Hour, grid.Hour + 2*second, 8 * second, 6 * second, 8 * second},
		{"this one was set back, too", shim.CauseExit, grid.Hour, grid.Hour + 2*second, -4 * second, 0, 1},
		{"this one was, and it could not be started", shim.CauseStart, grid.Hour, grid.Hour, -4 * second, 0, 0},
	} {
		o := ranFor(&shim.Ended{Cause: tt.cause, Start: ordered + tt.begins, End: ordered + tt.ends}, ordered, ordered+tt.now)
		if start, end := o.Start-ordered, o.End-ordered; start != tt.start || end != tt.end {
			t.Errorf("%s: from %d to %d, want %d to %d", tt.name, start, end, tt.start, tt.end)
		}
	}
	for _, began := range []bool{false, true} { // nobody knows when
		o := outcome{Result: grid.Result{Start: grid.Never, End: grid.Never}}
		if o.timed(1000, began); o.Start != 1000 || (o.End > 1000) != began {
			t.Errorf("begun %v: from %d to %d", began, o.Start, o.End)
		}
	}
}

// TestBegunOnceMore: by somebody who put it back, or by a controller that has forgotten it.
func TestBegunOnceMore(t *testing.T) {
	put, err := parseShow("JobName=x JobState=PENDING Reason=BeginTime Requeue=1 Restarts=1 ExitCode=0:0 StartTime=Unknown EndTime=Unknown")
	if err != nil {
		t.Fatal(err)
	}
	forgot, err := parseShow("JobName=x JobState=PENDING Reason=None Requeue=0 Restarts=0 ExitCode=0:0 StartTime=Unknown EndTime=Unknown")
	if err != nil {
		t.Fatal(err)
	}
	exit := func(code int32) *shim.Ended { return &shim.Ended{Cause: shim.CauseExit, ExitCode: code} }
	for _, tt := range []struct {
		name   string
		s      shown
		end    *shim.Ended
		wanted string
		want   State
	}{
		{"put back while it ran", put, exit(exitTerm), "", Requeued},
		{"put back, still shown so", shown{state: Requeued}, exit(exitTerm), "", Requeued},
		{"put back as it ended", put, exit(3), "", Completed},
		{"forgotten after a signal of its own", forgot, exit(exitTerm), "", Completed},
		{"forgotten while it ran", forgot, nil, "", Requeued},
		{"cancelled here", put, exit(0), "enough", Requeued},
	} {
		if got := before(&tt.s, tt.end, tt.wanted); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestWhatOthersHold(t *testing.T) {
	hour := grid.Hour
	for _, tt := range []struct {
		name string
		view view
		want []others.Taken
	}{
		{"nothing", view{processors: 8, counts: counts{idle: 8, total: 8}}, nil},
		{"ours", view{processors: 8, counts: counts{allocated: 4, idle: 4, total: 8}, ours: []held{{4, hour, false}}}, nil},
		{"two jobs of theirs", view{processors: 8, counts: counts{allocated: 5, idle: 3, total: 8}, others: []held{{2, hour, false}, {3, 2 * hour, false}}},
			[]others.Taken{{Processors: 2, Until: hour}, {Processors: 3, Until: 2 * hour}}},
		{"nodes that are down", view{processors: 8, counts: counts{idle: 6, other: 2, total: 8}}, []others.Taken{{Processors: 2, Until: grid.Never}}},
		{"a share of the cluster", view{processors: 4, counts: counts{allocated: 10, idle: 6, total: 16}, others: []held{{10, hour, false}}}, nil},
		{"theirs wait before ours", view{processors: 8, counts: counts{idle: 8, total: 8}, others: []held{{8, grid.Never, true}}, starts: []foretold{{1, hour}, {4, hour}, {8, 2 * hour}}},
			[]others.Taken{{Processors: 4, Until: hour}, {Processors: 4, Until: 2 * hour}}},
		{"Slurm does not say", view{processors: 8, counts: counts{allocated: 2, idle: 6, total: 8}, others: []held{{2, hour, false}}, starts: []foretold{{1, 0}, {4, 0}, {8, grid.Never}}},
			[]others.Taken{{Processors: 4, Until: grid.Never}}},
		{"ours wait, too", view{processors: 8, counts: counts{allocated: 2, idle: 6, total: 8}, ours: []held{{6, grid.Never, true}}, others: []held{{2, hour, false}}, starts: []foretold{{1, hour}, {8, hour}}},
			[]others.Taken{{Processors: 2, Until: hour}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.view.taken(); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestNothingOfAJobIsAnOption: whatever a job is called or runs.
func TestNothingOfAJobIsAnOption(t *testing.T) {
	c := Config{Partition: "main", Options: []string{"--constraint=ib"}, Work: "/w", Shim: []string{"/w/it's mine", "shim", "--order", OrderWord}}
	args := c.arguments("x.1.abc", &note{Tasks: 3, Each: 2, Limit: 90 * second, Memory: 100}, "/w/50%/slurm")
	want := []string{"--parsable", "--job-name=gridnode-x.1.abc", "--no-requeue", "--export=ALL", "--input=/dev/null", "--open-mode=truncate", "--output=/w/50%%/slurm/x.1.abc.log",
		"--chdir=/w/50%/slurm", "--ntasks=3", "--cpus-per-task=2", "--time=2", "--mem-per-cpu=100M", "--partition=main", "--constraint=ib"}
	if !slices.Equal(args, want) {
		t.Errorf("got  %q\nwant %q", args, want)
	}
	if args := c.arguments("x.1.abc", &note{Tasks: 3, Each: 2, Together: true}, "/w"); !slices.Contains(args, "--nodes=1") {
		t.Errorf("of tasks that one shell starts: %q", args)
	}
	c.Options = append(c.Options, "--nice=500")
	args = c.arguments("x.1.abc", &note{Tasks: 1, Each: 1, Nice: 70}, "/w")
	if at := slices.Index(args, "--nice=70"); at < 0 || at > slices.Index(args, "--nice=500") {
		t.Errorf("a nice job: %q, want what the configuration says to count", args)
	}
	if got, want := c.script(&note{}, "/w/x.order"), "#!/bin/sh\nexec '/w/it'\\''s mine' 'shim' '--order' '/w/x.order'\n"; got != want {
		t.Errorf("script %q, want %q", got, want)
	}
	for _, bad := range []Config{
		{Work: "relative"}, {Work: "/w", Partition: "-x"}, {Work: "/w", Account: "a b"}, {Work: "/w", QOS: "--x"}, {Work: "/w", Options: []string{"constraint"}},
		{Work: "/w", Options: []string{"--output=x"}}, {Work: "/w", Options: []string{"--partition=x"}}, {Work: "/w", Options: []string{"--gres=gpu:1\n--wrap=x"}}, {Work: "/w", Options: []string{"-p x"}},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
