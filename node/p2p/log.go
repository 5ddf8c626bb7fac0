package p2p

import (
	"os"

	golog "github.com/ipfs/go-log/v2"
)

// libp2p reports to stderr what is no fault of anybody, such as a listener that
// was closed because the node stops. This package reports what matters through
// its own logger; libp2p's is for developers, who ask for it as its documentation says.
func init() {
	if os.Getenv("GOLOG_LOG_LEVEL") == "" && os.Getenv("IPFS_LOGGING") == "" {
		golog.SetAllLoggers(golog.LevelFatal)
	}
}
