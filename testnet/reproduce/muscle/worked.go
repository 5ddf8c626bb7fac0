package muscle

import (
	"fmt"
	"slices"

	"gridnode/coalloc/muscle"
	"gridnode/testnet/reproduce"
)

// publishedTable is table 2, by row; job 0 is J1.
var publishedTable = [][][]int{
	{{1}, {4}},
	{{0}, {4, 1}, {5}},
	{{1, 0}, {3}, {5, 4}},
	{{2}, {3, 1}, {5, 0}},
	{{2, 1}, {3, 0}},
	{{2, 0}, {5, 3, 1}},
}

// worked is the case study of section 4.1.
func worked() reproduce.Experiment {
	table := muscle.NewTable([]int{2, 1, 4, 3, 1, 2}, len(publishedTable))
	same := 0
	for row, compositions := range publishedTable {
		if slices.EqualFunc(table.Row(row+1), compositions, sameJobs) {
			same++
		}
	}
	return reproduce.Experiment{
		Title: "Tables 1 and 2: the composition table",
		Claims: []reproduce.Claim{reproduce.NewClaim("the composition table of the case study", fmt.Sprintf("%d rows", len(publishedTable)),
			same == len(publishedTable), "%d rows the same", same)},
	}
}

// sameJobs reports whether two compositions have the same jobs; their order is not told.
func sameJobs(a, b []int) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
