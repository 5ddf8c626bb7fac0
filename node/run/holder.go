package run

import "gridnode/grid"

// Holder is an engine that has to have processors together before tasks of this site start on
// them at one moment with others elsewhere. Only the host's loop calls it.
type Holder interface {
	// Hold has processors for all tasks of a gang that run at this site, and calls ready once,
	// from any goroutine: they are there, or never will be, for a reason for people. Squads of
	// the gang that are started then run on them.
	Hold(gang *grid.Task, ready func(why error))
	// LetGo says that all of a gang has ended, or that nobody waits for it any more.
	LetGo(gang grid.TaskID)
}
