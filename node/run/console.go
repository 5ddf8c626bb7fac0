package run

import (
	"context"
	"net"

	"gridnode/grid"
	"gridnode/node/console"
	"gridnode/node/shim"
)

// Consoles is an engine whose tasks can be looked into while they run. What a task's
// connection says is of package console, from its first frame on.
type Consoles interface {
	Console(ctx context.Context, task grid.TaskID, request *console.Request) (net.Conn, error)
}

// Console implements Consoles. It returns console.ErrAbsent for a task that does not run.
func (p *Processes) Console(ctx context.Context, task grid.TaskID, request *console.Request) (net.Conn, error) {
	p.mu.Lock()
	run, runs := p.running[Process{Task: task}]
	p.mu.Unlock()
	if !runs {
		return nil, console.ErrAbsent
	}
	return shim.DialConsole(ctx, p.files.Home, run.name, request)
}
