package allowance

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/floods.md has the table.
func TestPageHasTheTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/floods.md")
	if err != nil {
		t.Fatal(err)
	}
	for c, line := range Table {
		if line.Name == "" || line.Rate <= 0 || line.Burst <= 0 {
			t.Errorf("class %d has no line", c)
		}
		if row := fmt.Sprintf("| %s | %g | %.0f |", line.Name, line.Rate, line.Burst); !strings.Contains(string(text), row) {
			t.Errorf("no row %q", row)
		}
	}
}
