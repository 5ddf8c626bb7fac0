package wasm

import (
	"runtime/debug"
	"strings"
	"sync"
)

// codePrefix begins the name of the directory of code that this program's wazero makes.
var codePrefix = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "wazero-"
	}
	for _, dep := range info.Deps {
		if strings.HasSuffix(dep.Path, "/tetratelabs/wazero") {
			return "wazero-" + dep.Version + "-"
		}
	}
	return "wazero-" // of a test, which has no versions
})
