package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gridnode/node/api"
)

// cheaper says, if it is so, that other sites would have run a job for less and run no jobs
// of others: whoever knows them can ask their owners.
func cheaper(cmd *cobra.Command, client *api.Client, jobs []api.Job) {
	if len(jobs) == 0 || jobs[0].Policy == "local" || jobs[0].State == "refused" {
		return
	}
	reply, err := client.Why(cmd.Context(), jobs[0].ID)
	if err != nil {
		return // the job is safe, and this is only a note
	}
	if note := cheaperNote(reply.Verdicts); note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), note)
	}
}

// namedMost is how many sites a note names.
const namedMost = 3

// cheaperNote returns the note, empty if there is nothing to say.
func cheaperNote(verdicts []api.Verdict) string {
	var chosen *api.Verdict
	for i := range verdicts {
		if verdicts[i].Outcome == outcomeChosen {
			chosen = &verdicts[i]
		}
	}
	if chosen == nil {
		return ""
	}
	var names []string
	for _, v := range verdicts {
		if v.Outcome == outcomeNoForeign && v.Cost < chosen.Cost {
			names = append(names, cellText(v.SiteName))
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("note: %s would be cheaper, but runs no foreign jobs", names[0])
	case n > namedMost:
		return fmt.Sprintf("note: %s and %d more would be cheaper, but run no foreign jobs", strings.Join(names[:namedMost], ", "), n-namedMost)
	default:
		return fmt.Sprintf("note: %s and %s would be cheaper, but run no foreign jobs", strings.Join(names[:n-1], ", "), names[n-1])
	}
}
