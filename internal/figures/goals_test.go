package main

import (
	"context"
	"regexp"
	"testing"
)

// said answers every command with one text.
type said string

func (said) tell(string) {}

func (s said) output(context.Context, string) ([]byte, error) { return []byte(s), nil }

// What is to be reached stands beside what was measured; what was not is said to be missing.
func TestGoals(t *testing.T) {
	g := goals{
		title: "Goals", parts: []bench{{title: "One", command: "measure one"}},
		rows: []goal{
			{"burst", "3 × as many", of("%s jobs/s", "Burst/here jobs/s"), of("%s jobs/s", "Burst/there jobs/s")},
			{"kills", "0 lost", of("%s lost, %s twice", "Kills/both lost", "Kills/both twice"), nil},
			{"latency", "100 ms", of("%s ms", "Latency/x ms"), nil},
		},
	}
	text, err := g.measure(t.Context(), said("BenchmarkBurst/here 1 200 jobs 85.2 jobs/s\nBenchmarkBurst/there 1 200 jobs 26.3 jobs/s\nBenchmarkKills/both 1 0 lost 1 twice\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`burst +\| +3 × as many +\| +85\.2 jobs/s +\| +26\.3 jobs/s`, `kills +\| +0 lost +\| +0 lost, 1 twice +\| +- `, `latency +\| +100 ms +\| +not measured +\| +- `, `## One\n`} {
		if !regexp.MustCompile(row).MatchString(text) {
			t.Errorf("nothing is like %s in\n%s", row, text)
		}
	}
	if _, err := g.measure(t.Context(), said("")); err == nil {
		t.Error("a page was written of nothing")
	}
}
