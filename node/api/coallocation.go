package api

// Coallocation is how a job may be divided over several sites, as it is submitted: by
// its components, or as the placement policy likes within bounds.
type Coallocation struct {
	Components string   `json:"components,omitempty"` // "8@physics,8,16": processors, and where; alternatives separated by "|"
	Count      string   `json:"count,omitempty"`      // "2..4": how many components, divided as the policy likes
	MinPerSite int64    `json:"minPerSite,omitempty"` // with count: least processors of a component
	MaxSites   int64    `json:"maxSites,omitempty"`   // most sites to be combined; 0: no limit
	Policy     string   `json:"policy,omitempty"`     // wf, cf, fcm, ca or adaptive; default: coallocation.policy of the configuration
	CCR        *float64 `json:"ccr,omitempty"`        // communication over computation time within one site; not known if left out
}

// Component is a part of a co-allocated job at one site, once the job has started.
type Component struct {
	Site       string `json:"site"`     // ID
	SiteName   string `json:"siteName"` // the same for people
	Processors int64  `json:"processors"`
	Tasks      int64  `json:"tasks"`
}
