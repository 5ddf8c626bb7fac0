package main

import (
	"strings"
	"testing"
)

// good is a job of two tasks that was done at the second try.
func good() (record, map[string]map[int][]entry) {
	code := int32(0)
	r := record{ID: "J", Home: "a", Tasks: 2, Input: "x", Copied: true, Known: true, Over: true, State: "done", Exit: &code, Epoch: 2,
		Output: "task 0 read x\ntask 1 read x\n", Result: "x"}
	entries := func() []entry { return []entry{{"begin", "b", 1, "x"}, {"begin", "c", 2, "x"}, {"end", "c", 2, "x"}} }
	return r, map[string]map[int][]entry{"J": {0: entries(), 1: entries()}}
}

func TestJudge(t *testing.T) {
	one, seven := int32(1), int32(7)
	for _, tt := range []struct {
		name  string
		spoil func(r *record, tasks map[int][]entry)
		want  string // empty: nothing is broken
	}{
		{"good", func(r *record, tasks map[int][]entry) {}, ""},
		{"unknown", func(r *record, tasks map[int][]entry) { r.Known = false }, "lost: its home does not know it"},
		{"never over", func(r *record, tasks map[int][]entry) { r.Over, r.State = false, "running" }, "lost: it is not over"},
		{"two at a time", func(r *record, tasks map[int][]entry) { tasks[0] = append(tasks[0], entry{"overlap", "b", 3, "-"}) }, "double"},
		{"twice in an epoch", func(r *record, tasks map[int][]entry) { r.Epoch = 1 }, "began 2 times"},
		{"twice in an epoch, struck", func(r *record, tasks map[int][]entry) { r.Epoch, r.Struck = 1, true }, ""},
		{"done and never begun", func(r *record, tasks map[int][]entry) { delete(tasks, 1) }, "1 of its 2 tasks"},
		{"done without an end", func(r *record, tasks map[int][]entry) { tasks[1] = tasks[1][:2] }, "1 of its 2 tasks"},
		{"another code", func(r *record, tasks map[int][]entry) { r.State, r.Exit = "failed", &one }, "exit code 1, want code 0"},
		{"another code, struck", func(r *record, tasks map[int][]entry) { r.State, r.Exit, r.Struck = "failed", &one, true }, ""},
		{"done with another code", func(r *record, tasks map[int][]entry) { r.Exit, r.Struck = &seven, true }, "done with exit code 7"},
		{"done, but it fails", func(r *record, tasks map[int][]entry) { r.Code = 7; r.Exit = &seven }, "want code 7"},
		{"failed as it should", func(r *record, tasks map[int][]entry) { r.Code, r.Exit, r.State = 7, &seven, "failed" }, ""},
		{"given up with the code that it ends with", func(r *record, tasks map[int][]entry) {
			r.State, r.Code, r.Exit, r.Reason, r.Struck, r.Output = "failed", 1, &one, givenUp, true, ""
			r.Tasks = 1
		}, ""},
		{"given up, and nothing struck it", func(r *record, tasks map[int][]entry) { r.State, r.Code, r.Exit, r.Reason = "failed", 1, &one, givenUp }, "want code 1"},
		{"another input", func(r *record, tasks map[int][]entry) { tasks[0][2].In = "y" }, "read y, want x"},
		{"output lost", func(r *record, tasks map[int][]entry) { r.Output = "task 0 read x\n" }, "want once"},
		{"output twice", func(r *record, tasks map[int][]entry) { r.Output += r.Output }, "want once"},
		{"output of another", func(r *record, tasks map[int][]entry) { r.Output += "?\n" }, "lines besides"},
		{"another file", func(r *record, tasks map[int][]entry) { r.Result = "y" }, "y came home"},
		{"cancelled", func(r *record, tasks map[int][]entry) { r.State = "cancelled" }, "nobody wanted"},
		{"refused though it ran", func(r *record, tasks map[int][]entry) { r.State = "refused" }, "refused and has begun"},
		{"refused after its machine died", func(r *record, tasks map[int][]entry) { r.State, r.Epoch, r.Struck = "refused", 2, true }, ""},
		{"refused as it ran on a machine that died", func(r *record, tasks map[int][]entry) { r.State, r.Epoch, r.Struck = "refused", 1, true }, "refused and has begun"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, written := good()
			tt.spoil(&r, written["J"])
			got := strings.Join(judge([]record{r}, written), "; ")
			if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestJudgeMoney(t *testing.T) {
	for _, tt := range []struct {
		accounts []account
		paid     int
		want     string
	}{
		{[]account{{-5, 0}, {5, 0}}, 1, ""},
		{[]account{{-5, 0}, {6, 0}}, 1, "sum to 1"},
		{[]account{{-5, 0}, {3, 2}}, 1, "2 micro-credits are held"},
		{[]account{{-5, 0}, {5, 0}}, 2, "paid 2 times"},
	} {
		got := strings.Join(judgeMoney(tt.accounts, map[string]int{"J": tt.paid}), "; ")
		if !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%v, paid %d times: it says %q, want %q", tt.accounts, tt.paid, got, tt.want)
		}
	}
}

func TestParseEntries(t *testing.T) {
	got, err := parseEntries("begin a 12 00ff\noverlap b 13 -\n")
	if err != nil || len(got) != 2 || got[0] != (entry{"begin", "a", 12, "00ff"}) || got[1].What != "overlap" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseEntries("begin a\n"); err == nil {
		t.Error("a line that is torn was taken")
	}
}
