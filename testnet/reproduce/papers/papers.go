// Package papers is the registry of the published evaluations that can be repeated.
package papers

import (
	"fmt"
	"strings"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/coallocation"
	"gridnode/testnet/reproduce/gridfederation"
	"gridnode/testnet/reproduce/matchmaking"
	"gridnode/testnet/reproduce/muscle"
	"gridnode/testnet/reproduce/resourcedelegation"
)

// All returns the papers that can be repeated, in order of publication.
func All() []reproduce.Paper {
	return []reproduce.Paper{gridfederation.Paper, muscle.Paper, matchmaking.Paper, coallocation.Paper, resourcedelegation.Paper}
}

// Find returns the paper of a name.
func Find(name string) (reproduce.Paper, error) {
	var names []string
	for _, p := range All() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return reproduce.Paper{}, fmt.Errorf("%w: %q is no paper that can be repeated: want %s", reproduce.ErrConfig, name, strings.Join(names, ", "))
}
