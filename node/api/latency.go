package api

// Latency is what this site knows of the way between two sites.
type Latency struct {
	To      string  `json:"to"` // ID; within the site itself if it is its own
	Latency Seconds `json:"latency"`
	Source  string  `json:"source"` // declared, measured, reported or estimated
}
