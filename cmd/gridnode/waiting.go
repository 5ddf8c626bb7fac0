package main

import (
	"fmt"
	"time"

	"gridnode/node/api"
)

// waitText says where a job stands that waits for processors, and when it begins.
func waitText(j *api.Job, now time.Time) (text string) {
	switch {
	case j.Place == 1:
		text = ", the next in its queue"
	case j.Place > 1:
		text = fmt.Sprintf(", place %d in its queue", j.Place)
	}
	if j.ExpectedStart == 0 || j.Start != 0 {
		return text
	}
	in := j.ExpectedStart.Time().Sub(now)
	when := "now"
	if in > time.Second {
		when = "in " + in.Round(time.Second).String()
	}
	switch j.Expectation {
	case "promised":
		return text + ", promised to begin " + when
	case "foretold":
		return text + ", to begin " + when + " as its site says"
	}
	return text + ", estimated to begin " + when + " at the latest, by the limits of those before it"
}
