package main

import (
	"fmt"
	"strings"
)

// subjects returns all pages, in the order in which they are listed and written: what
// takes seconds first.
func subjects() []subject {
	return []subject{
		federation(), delegation(), leasing(), coallocation(), packing(), chaos(), hostile(),
		directory(), bank(), titan(), lookups(), starts(),
		speed(), jobs(), files(), slurm(), floods(), mutants(), mutation(), fuzzed(), realSites(), reliability(), live(), sizes(),
		reproduction("resource-delegation", true, "seconds", "The gain of resource delegation (2009), repeated"),
		reproduction("grid-federation", true, "8 min", "Grid-Federation (2004), repeated"),
		reproduction("co-allocation", false, "4 min", "Processor co-allocation in KOALA (2008), repeated"),
		reproduction("delegated-matchmaking", false, "15 min", "Delegated MatchMaking (2007), repeated"),
		reproduction("muscle", false, "7 min", "MUSCLE and TITAN (2004), repeated"),
	}
}

func reproduction(name string, logs bool, takes, title string) subject {
	return subject{
		name: "reproduction-" + name, title: title, takes: takes,
		intro: "The evaluation of a paper in virtual time, with the code that real sites run. " +
			"[reproduction.md](../reproduction.md) says how to read it and why some figures depart.",
		parts: []part{paper{name: name, logs: logs}},
	}
}

// product returns a row for each combination of values. The pattern of the flags has
// a %s for each of them.
func product(pattern string, values ...[]string) (rows []oneRun) {
	choices := [][]string{nil}
	for _, list := range values {
		var longer [][]string
		for _, c := range choices {
			for _, v := range list {
				longer = append(longer, append(c[:len(c):len(c)], v))
			}
		}
		choices = longer
	}
	for _, c := range choices {
		args := make([]any, len(c))
		for i := range c {
			args[i] = c[i]
		}
		rows = append(rows, oneRun{c, fmt.Sprintf(pattern, args...)})
	}
	return rows
}

func list(values string) []string { return strings.Fields(values) }
