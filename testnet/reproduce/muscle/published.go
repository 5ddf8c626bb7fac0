package muscle

import "gridnode/testnet/reproduce"

// Figures that the text of the MUSCLE paper prints; its plots are not in numbers.
var (
	// publishedMargin is by how much of theirs MUSCLE's MCP is below DLL's and WRAND's
	// (section 5.1, figure 4), in percent, by mean number of jobs.
	publishedMargin = map[int][2]reproduce.Number{40: {12.1, 8.4}, 100: {56.7, 48.9}}

	// publishedMarginWeights is the same for figure 6, over DLL (section 5.3).
	publishedMarginWeights = map[int]reproduce.Number{40: 15.6, 100: 57.5, 160: 13.7}
)

// publishedBalanced is from how many jobs on MUSCLE's PB is better than DLL's (5.1).
const publishedBalanced = 60
