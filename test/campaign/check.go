package main

import (
	"fmt"
	"strings"
)

// record is a job, as who submitted it knows it and as its home says at the end.
type record struct {
	ID     string
	Home   string // name of the site
	Tasks  int
	Code   int32  // that it ends with
	Input  string // digest of what it brings along
	Copied bool   // it leaves a copy of its input
	dir    string // where that comes to
	Struck bool   // a process of it was killed, or what watches over it

	Known  bool // home has it
	Over   bool
	State  string
	Exit   *int32
	Epoch  uint32
	Output string // what it wrote, as home has it
	Result string // digest of the copy that came home
	Reason string
}

// judge compares what homes say of their jobs with what these wrote themselves, and returns each
// promise that was broken. Jobs that nobody was told to have been accepted are in the ledger alone.
func judge(jobs []record, written map[string]map[int][]entry) (broken []string) {
	for id, tasks := range written {
		for rank, entries := range tasks {
			for _, e := range entries {
				if e.What == "overlap" {
					broken = append(broken, fmt.Sprintf("double: task %d of %s began at %s while another of it was alive", rank, id, e.Site))
				}
			}
		}
	}
	for i := range jobs {
		for _, text := range jobs[i].judge(written[jobs[i].ID]) {
			broken = append(broken, fmt.Sprintf("%s: job %s of %s, %s, epoch %d: %q", text, jobs[i].ID, jobs[i].Home, jobs[i].State, jobs[i].Epoch, jobs[i].Reason))
		}
	}
	return broken
}

// givenUp is why a job failed whose machines died time and again: its code says nothing of what it did.
const givenUp = "its execution vanished too often"

// judge does so for one job.
func (r *record) judge(tasks map[int][]entry) (broken []string) {
	wrong := func(format string, args ...any) { broken = append(broken, "wrong: "+fmt.Sprintf(format, args...)) }
	switch {
	case !r.Known:
		return []string{"lost: its home does not know it"}
	case !r.Over:
		return []string{"lost: it is not over"}
	}
	begun, ended, whole := 0, 0, 0
	for rank := range r.Tasks {
		begins, ends := 0, 0
		for _, e := range tasks[rank] {
			switch e.What {
			case "begin":
				begins++
			case "end":
				ends++
			}
			if e.In != "-" && e.In != r.Input {
				wrong("task %d read %s, want %s", rank, e.In, r.Input)
			}
		}
		if begins > int(r.Epoch) && !r.Struck { // where its machine died an execution is begun once more
			wrong("task %d began %d times", rank, begins)
		}
		if ends > 0 {
			whole++
		}
		begun, ended = begun+begins, ended+ends
	}
	switch r.State {
	case "done", "failed":
		complete := r.Reason != givenUp && r.Exit != nil && *r.Exit == r.Code && (r.Code == 0) == (r.State == "done")
		switch {
		case complete && whole < r.Tasks && !(r.Code != 0 && r.Tasks > 1): // where one fails the others are ended
			wrong("%d of its %d tasks have come to their end", whole, r.Tasks)
		case !complete && !r.Struck:
			wrong("it ended as %s, want code %d", exitText(r.Exit), r.Code)
		case !complete && r.State == "done":
			wrong("it is done with %s, want code %d", exitText(r.Exit), r.Code)
		}
		if complete && (r.Code == 0 || r.Tasks == 1) {
			broken = append(broken, r.judgeOutput()...)
		}
	case "refused":
		if begun > 0 && !(r.Struck && r.Epoch > 1) { // where its machine died nobody may want it after that
			wrong("it was refused and has begun %d times", begun)
		}
	default:
		wrong("nobody wanted it %s", r.State)
	}
	return broken
}

// judgeOutput does so for what came of a job that has come to its end.
func (r *record) judgeOutput() (broken []string) {
	for rank := range r.Tasks {
		line := fmt.Sprintf("task %d read %s\n", rank, r.Input)
		if n := strings.Count(r.Output, line); n != 1 {
			broken = append(broken, fmt.Sprintf("wrong: its output is %q, want once %q", r.Output, line))
		}
	}
	if strings.Count(r.Output, "\n") != r.Tasks {
		broken = append(broken, fmt.Sprintf("wrong: its output has lines besides: %q", r.Output))
	}
	if r.Copied && r.Result != r.Input {
		broken = append(broken, fmt.Sprintf("wrong: %s came home, want %s", r.Result, r.Input))
	}
	return broken
}

func exitText(code *int32) string {
	if code == nil {
		return "no exit code"
	}
	return fmt.Sprintf("exit code %d", *code)
}

// account is what a bank says of a site's credits.
type account struct{ Settled, Committed int64 }

// judgeMoney returns what is wrong with the books of a bank when nothing is under way: they sum to
// zero, nothing is held, and each execution was paid once at most.
func judgeMoney(accounts []account, paid map[string]int) (broken []string) {
	var sum, held int64
	for _, a := range accounts {
		sum += a.Settled + a.Committed
		held += a.Committed
	}
	if sum != 0 {
		broken = append(broken, fmt.Sprintf("credits: all accounts sum to %d micro-credits", sum))
	}
	if held != 0 {
		broken = append(broken, fmt.Sprintf("leak: %d micro-credits are held with nothing under way", held))
	}
	for what, n := range paid {
		if n > 1 {
			broken = append(broken, fmt.Sprintf("credits: %s was paid %d times", what, n))
		}
	}
	return broken
}
