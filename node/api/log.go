package api

import "context"

// LogLevel is how severe records of a subsystem must be to be logged.
type LogLevel struct {
	Part  string `json:"part"`  // of the daemon; empty in a request: all
	Level string `json:"level"` // debug, info, warn or error
}

// LogLevels are those of all subsystems, or those to change.
type LogLevels struct {
	Levels []LogLevel `json:"levels"`
}

// LogLevels returns the levels of the daemon's log. Those of change it changes first, all of
// them or none, until the daemon ends; nil: none.
func (c *Client) LogLevels(ctx context.Context, change *LogLevels) (*LogLevels, error) {
	if change == nil {
		return get[LogLevels](ctx, c, "/v1/log")
	}
	return post[LogLevels](ctx, c, "/v1/log", change)
}
