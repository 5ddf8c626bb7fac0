package point

import (
	"iter"
	"strings"

	"gridnode/grid"
	"gridnode/internal/wire"
)

// records are the kinds of records that daemons save.
var records = []string{
	"acquaintances", "ban", "bank/account", "bank/bill", "bank/hold", "bank/journal", "bank/payment", "coalloc", "coalloc-home", "dataset", "deaths", "fee/owed", "fee/owes",
	"hold", "invitation", "job", "lease", "link", "met", "number", "quota", "revoked",
}

// Missing returns, of names of points, those of records and messages of which there is none at all, whatever the cause.
func Missing(names iter.Seq[string]) (missing []string) {
	met := make(map[string]bool)
	for name := range names {
		text, _, _ := strings.Cut(name, ",")
		for _, side := range []string{"before ", "after "} {
			text = strings.TrimPrefix(text, side)
		}
		met[text] = true
	}
	look := func(kind string) {
		if !met[kind] {
			missing = append(missing, "before "+kind, "after "+kind)
		}
	}
	for _, of := range records {
		look(save.words(of, 0))
	}
	for kind := range grid.Kind(wire.KindMax) {
		if wire.KindName(kind) != "" && !met[publish.words("", kind)] {
			look(send.words("", kind))
		}
	}
	return missing
}
