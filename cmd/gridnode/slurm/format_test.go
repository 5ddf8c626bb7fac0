package slurm

import (
	"strings"
	"testing"
	"time"

	"gridnode/node/api"
)

// at is an instant for tests.
func at(seconds int64) api.Instant { return api.InstantOf(time.Unix(1_700_000_000+seconds, 0)) }

func sample() *api.Job {
	code, index := int32(137), int64(3)
	return &api.Job{
		Number: 15, ArrayNumber: 12, ArrayIndex: &index, Name: "sim run[3]", User: "ann", State: "failed", SiteName: "beta", Processors: 4,
		Tasks: 2, Time: 90_000_000, Submitted: at(0), Start: at(10), End: at(3715), ExitCode: &code, Reason: "wall-clock limit of 1h exceeded",
	}
}

func TestQueueFormat(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct{ format, want string }{
		{"%i %A %F %K|%j|%u", "12_3 15 12 3|sim run|ann"},
		{"%.8i|%-|", ""},
		{"%.8i|%8t|%T", "    12_3|TO      |TIMEOUT"},
		{"%.3P %M %l %C %D", "bet 1:01:45 1:30 4 1"},
		{"text", "text"},
	} {
		table, err := ParseQueue(tt.format)
		if tt.want == "" {
			if err == nil {
				t.Errorf("%q was taken", tt.format)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", tt.format, err)
		}
		if got := table.Line(sample(), now); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.format, got, tt.want)
		}
	}
	table, err := ParseQueueNames("JobID:6,State:.10,name")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.Line(sample(), now), "15       TIMEOUTsim run             "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := ParseQueueNames("nosuch"); err == nil {
		t.Error("a field that does not exist was taken")
	}
}

func TestAccountFormat(t *testing.T) {
	a, err := ParseAccount("JobID,state%4,ExitCode,Elapsed,JobName%-9,NodeList")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if got, want := a.Line(sample(), "", now), "12_3         TIM+      0:9   01:01:45 sim run              beta "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.Between = "|"
	if got, want := a.Line(sample(), "batch", now), "12_3.batch|TIMEOUT|0:9|01:01:45|batch|beta"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.Closed = true
	if got := a.Head(); len(got) != 1 || !strings.HasSuffix(got[0], "|NodeList|") {
		t.Errorf("%q", got)
	}
	if _, err := ParseAccount("JobID,nosuch"); err == nil {
		t.Error("a field that does not exist was taken")
	}
}

func TestStates(t *testing.T) {
	for _, tt := range []struct{ state, reason, waits, want, why string }{
		{"waiting", "", "held", "PENDING", "JobHeldUser"}, {"waiting", "", "array-limit", "PENDING", "JobArrayTaskLimit"},
		{"waiting", "", "dependency-never-satisfied", "PENDING", "DependencyNeverSatisfied"}, {"queued", "", "", "PENDING", "Resources"},
		{"awarded", "", "", "CONFIGURING", "None"}, {"running", "", "", "RUNNING", "None"}, {"cancelling", "", "", "COMPLETING", "None"},
		{"done", "", "", "COMPLETED", "None"}, {"cancelled", "", "", "CANCELLED", "None"},
		{"failed", "its execution vanished too often", "", "NODE_FAIL", "None"}, {"failed", "", "", "FAILED", "None"},
		{"failed", "memory limit of 5 MiB", "", "OUT_OF_MEMORY", "None"},
	} {
		j := &api.Job{State: tt.state, Reason: tt.reason, WaitsFor: tt.waits}
		if got := StateOf(j).Name; got != tt.want || Reason(j) != tt.why {
			t.Errorf("%s, %q, %q: %s for %s, want %s for %s", tt.state, tt.reason, tt.waits, got, Reason(j), tt.want, tt.why)
		}
	}
}

// A name that holds a newline must not look like another job.
func TestNamesStayOnTheirLine(t *testing.T) {
	j := sample()
	j.Name = "a\n99 R\x1b[2J"
	table, _ := ParseQueue("%j")
	if got := table.Line(j, time.Now()); strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("%q", got)
	}
}
