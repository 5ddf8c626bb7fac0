package lrms

import "fmt"

// Discipline is the order in which queued jobs start.
type Discipline uint8

const (
	// EASY starts jobs in order of submission, and a job ahead of its turn if by
	// the estimates that does not delay the first job of the queue.
	EASY Discipline = iota
	// FCFS starts jobs strictly in order of submission, and promises no start before
	// that of an earlier promise.
	FCFS
	// TITAN is EASY over a queue whose first jobs a genetic algorithm puts in order,
	// by their deadlines, the makespan and the idle time (He et al. 2004; package titan).
	TITAN
)

var disciplineNames = [...]string{"easy", "fcfs", "titan"}

// String returns the name used in configuration files.
func (d Discipline) String() string { return disciplineNames[d] }

// ParseDiscipline reads what String prints.
func ParseDiscipline(s string) (Discipline, error) {
	for d, name := range disciplineNames {
		if s == name {
			return Discipline(d), nil
		}
	}
	return 0, fmt.Errorf("%q is no queue discipline: want easy, fcfs or titan", s)
}
