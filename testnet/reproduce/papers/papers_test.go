package papers

import (
	"errors"
	"strings"
	"testing"

	"gridnode/testnet/reproduce"
	"gridnode/testnet/reproduce/gridfederation"
)

// TestFind: an unknown name is answered with the known ones.
func TestFind(t *testing.T) {
	if _, err := Find("nothing"); !errors.Is(err, reproduce.ErrConfig) || !strings.Contains(err.Error(), gridfederation.Paper.Name) {
		t.Errorf("error %v, want one that names the papers", err)
	}
}
