package main

import (
	"io"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// fact is one thing that a verb has done or found out, which says it in a line of text, too.
type fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

var factColumns = []column[fact]{
	{head: "VALUE", text: func(f fact) string { return f.Value }},
	{head: "KEY", text: func(f fact) string { return f.Key }},
}

// addActFlags gives a verb that does something -o: without it, it says in words what it has
// done.
func addActFlags(cmd *cobra.Command, l *listing) {
	addListingFlags(cmd, l, formatTable, formatJSON, formatCSV, formatName)
}

// act prints what a verb has done: say does in words; else it is object in JSON, and facts in
// the other formats, the first of which names what it was done to.
func (l *listing) act(w io.Writer, object any, facts []fact, say func()) error {
	switch l.format {
	case formatTable:
		say()
		return nil
	case formatJSON:
		return printJSON(w, object)
	case formatName:
		facts = facts[:min(len(facts), 1)]
	}
	return printList(w, *l, factColumns, facts)
}

// actJobs prints the jobs that a verb has changed.
func (l *listing) actJobs(w io.Writer, jobs []api.Job, say func()) error {
	if l.format == formatTable {
		say()
		return nil
	}
	return printList(w, *l, jobColumns, jobs)
}
