package main

import (
	"errors"
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

// printOne prints what a verb has made or changed: one object in JSON, else a list of one.
func printOne[T any](w io.Writer, l listing, columns []column[T], one T) error {
	if l.format == formatJSON {
		return printJSON(w, one)
	}
	return printList(w, l, columns, []T{one})
}

// actOn has something done to jobs and prints them, unless words are wanted, as they come: see,
// which gets each of them, says those.
func (l *listing) actOn(cmd *cobra.Command, client *api.Client, act string, jobs api.IDsRequest, see func(*api.Job)) (timedOut bool, err error) {
	if l.format == formatTable {
		timedOut, err = api.ActOnJobs(cmd.Context(), client, act, jobs, func(j *api.Job) error { see(j); return nil })
		return timedOut, apiError(err)
	}
	rows := newRoll(cmd.OutOrStdout(), *l, jobColumns)
	timedOut, err = api.ActOnJobs(cmd.Context(), client, act, jobs, func(j *api.Job) error {
		see(j)
		return rows.print(*j)
	})
	return timedOut, errors.Join(apiError(err), rows.close(err == nil))
}
