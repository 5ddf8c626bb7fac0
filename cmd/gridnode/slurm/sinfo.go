package slurm

import (
	"fmt"
	"strconv"
	"time"

	"gridnode/node/api"
)

// SitesFormat is sinfo's own format.
const SitesFormat = "%P %.5a %.10l %.6D %.6t %N"

// siteLetters are sinfo's fields. A site is a partition of one node.
var siteLetters = map[byte]column[*api.SiteInfo]{
	'P': {"PARTITION", func(s *api.SiteInfo, _ time.Time) string {
		if s.Self {
			return s.Name + "*"
		}
		return s.Name
	}},
	'R': {"PARTITION", func(s *api.SiteInfo, _ time.Time) string { return s.Name }},
	'a': {"AVAIL", func(*api.SiteInfo, time.Time) string { return "up" }},
	'l': {"TIMELIMIT", func(*api.SiteInfo, time.Time) string { return "infinite" }},
	'D': {"NODES", func(*api.SiteInfo, time.Time) string { return "1" }},
	't': {"STATE", func(s *api.SiteInfo, _ time.Time) string { return shortStates[siteState(s)] }},
	'T': {"STATE", func(s *api.SiteInfo, _ time.Time) string { return siteState(s) }},
	'N': {"NODELIST", func(s *api.SiteInfo, _ time.Time) string { return s.Name }},
	'n': {"HOSTNAMES", func(s *api.SiteInfo, _ time.Time) string { return s.Name }},
	'c': {"CPUS", func(s *api.SiteInfo, _ time.Time) string { return strconv.FormatInt(s.Processors, 10) }},
	'C': {"CPUS(A/I/O/T)", func(s *api.SiteInfo, _ time.Time) string {
		return fmt.Sprintf("%d/%d/0/%d", s.Processors-s.Free, s.Free, s.Processors)
	}},
	'm': {"MEMORY", func(s *api.SiteInfo, _ time.Time) string {
		return strconv.FormatInt(s.Memory*s.Processors>>20, 10)
	}},
	'A': {"NODES(A/I)", func(s *api.SiteInfo, _ time.Time) string {
		if s.Free == s.Processors {
			return "0/1"
		}
		return "1/0"
	}},
	'F': {"NODES(A/I/O/T)", func(s *api.SiteInfo, _ time.Time) string {
		if s.Free == s.Processors {
			return "0/1/0/1"
		}
		return "1/0/0/1"
	}},
	'f': {"AVAIL_FEATURES", func(*api.SiteInfo, time.Time) string { return "(null)" }},
	'G': {"GRES", func(*api.SiteInfo, time.Time) string { return "(null)" }},
	'E': {"REASON", func(*api.SiteInfo, time.Time) string { return "none" }},
	'h': {"OVERSUBSCRIBE", func(*api.SiteInfo, time.Time) string { return "NO" }},
	'b': {"ACTIVE_FEATURES", func(*api.SiteInfo, time.Time) string { return "(null)" }},
	'B': {"MAX_CPUS_PER_NODE", func(*api.SiteInfo, time.Time) string { return "UNLIMITED" }},
	'd': {"TMP_DISK", func(*api.SiteInfo, time.Time) string { return "0" }},
	'e': {"FREE_MEM", func(s *api.SiteInfo, _ time.Time) string { return strconv.FormatInt(s.Memory*max(s.Free, 0)>>20, 10) }},
	'g': {"GROUPS", func(*api.SiteInfo, time.Time) string { return "all" }},
	'H': {"TIMESTAMP", func(*api.SiteInfo, time.Time) string { return "Unknown" }},
	'i': {"RESERVATION", func(*api.SiteInfo, time.Time) string { return "" }},
	'I': {"PRIO_JOB_FACTOR", func(*api.SiteInfo, time.Time) string { return "1" }},
	'L': {"DEFAULTTIME", func(*api.SiteInfo, time.Time) string { return "n/a" }},
	'M': {"PREEMPT_MODE", func(*api.SiteInfo, time.Time) string { return "OFF" }},
	'o': {"NODE_ADDR", func(s *api.SiteInfo, _ time.Time) string { return s.Name }},
	'O': {"CPU_LOAD", func(s *api.SiteInfo, _ time.Time) string { return strconv.FormatInt(s.Processors-s.Free, 10) + ".00" }},
	'p': {"PRIO_TIER", func(*api.SiteInfo, time.Time) string { return "1" }},
	'r': {"ROOT", func(*api.SiteInfo, time.Time) string { return "no" }},
	's': {"JOB_SIZE", func(*api.SiteInfo, time.Time) string { return "1-infinite" }},
	'S': {"ALLOCNODES", func(*api.SiteInfo, time.Time) string { return "all" }},
	'u': {"USER", func(*api.SiteInfo, time.Time) string { return "Unknown" }},
	'U': {"USER", func(*api.SiteInfo, time.Time) string { return "Unknown" }},
	'v': {"VERSION", func(*api.SiteInfo, time.Time) string { return "22.05.8" }},
	'V': {"CLUSTER", func(s *api.SiteInfo, _ time.Time) string { return s.Name }},
	'w': {"WEIGHT", func(*api.SiteInfo, time.Time) string { return "1" }},
	'X': {"SOCKETS", func(*api.SiteInfo, time.Time) string { return "1" }},
	'Y': {"CORES", func(s *api.SiteInfo, _ time.Time) string { return strconv.FormatInt(s.Processors, 10) }},
	'Z': {"THREADS", func(*api.SiteInfo, time.Time) string { return "1" }},
	'z': {"S:C:T", func(s *api.SiteInfo, _ time.Time) string { return fmt.Sprintf("1:%d:1", s.Processors) }},
}

func siteState(s *api.SiteInfo) string {
	switch {
	case s.Processors == 0:
		return "down"
	case s.Free >= s.Processors:
		return "idle"
	case s.Free <= 0:
		return "allocated"
	}
	return "mixed"
}

// shortStates are sinfo's short names.
var shortStates = map[string]string{"allocated": "alloc", "mixed": "mix", "idle": "idle", "down": "down"}

// ParseSites reads a format of sinfo -o.
func ParseSites(format string) (Table[*api.SiteInfo], error) { return parseFormat(format, siteLetters) }

// SiteState returns the state of a site's one node.
func SiteState(s *api.SiteInfo) string { return siteState(s) }
