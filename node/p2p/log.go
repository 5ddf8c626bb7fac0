package p2p

import (
	"log/slog"
	"os"

	golog "github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/gologshim"
)

// libp2p reports to stderr what is no fault of anybody, such as a listener that
// was closed because the node stops. This package reports what matters through
// its own logger; libp2p's is for developers, who ask for it as its documentation
// says: GOLOG_LOG_LEVEL=error, for one. Parts of libp2p log through go-log, others
// through log/slog.
func init() {
	if os.Getenv("GOLOG_LOG_LEVEL") == "" && os.Getenv("IPFS_LOGGING") == "" {
		golog.SetAllLoggers(golog.LevelFatal)
		gologshim.SetDefaultHandler(slog.DiscardHandler)
	}
}
