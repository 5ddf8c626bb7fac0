package sandbox

import "gridnode/grid"

// Config is what the owner of a site sets.
type Config struct {
	Walls   Kind     // around jobs of other sites; empty: Auto
	Network bool     // they may use the machine's network
	Read    []string // absolute paths that they may read besides the system
	Own     bool     // jobs of this site are held to their memory, processors and processes

	Processes, Disk, Files int64 // of each job that is held to limits; 0: none, but for Disk inside walls
}

// Defaults of Config.
const (
	ProcessesDefault = 1024
	DiskDefault      = diskDefault
	FilesDefault     = 4096
)

// Default is what a site has that says nothing.
var Default = Config{Walls: Auto, Processes: ProcessesDefault, Disk: DiskDefault, Files: FilesDefault}

// Rule returns what a job may do. share is what a processor of the site has of its memory: for
// jobs that do not say what they need; 0: not known.
func (c *Config) Rule(foreign bool, need grid.Resources, share int64) Rule {
	if !foreign && !c.Own {
		return Rule{}
	}
	memory := need.Memory
	if memory == 0 {
		memory = share
	}
	r := Rule{Limits: Limits{
		Memory: memory * need.Processors, Processors: 1000 * need.Processors,
		Processes: c.Processes, Files: c.Files,
	}}
	if foreign {
		r.Walls, r.Network, r.Read, r.Limits.Disk = c.Walls != None, c.Network, c.Read, c.Disk
	}
	return r
}
