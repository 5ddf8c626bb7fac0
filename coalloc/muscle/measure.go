package muscle

import "math"

// MCP returns the mean comprehensive performance: that of the clusters, weighted with
// how many jobs each has (equation 7). It is 0 without jobs.
func MCP(cp []float64, jobs []int) float64 {
	sum, all := 0.0, 0
	for i := range cp {
		sum += cp[i] * float64(jobs[i])
		all += jobs[i]
	}
	if all == 0 {
		return 0
	}
	return sum / float64(all)
}

// PB returns the performance balance: how far the clusters' CP is from MCP, as a
// standard deviation (equation 8). It is 0 for one cluster.
func PB(cp []float64, jobs []int) float64 {
	if len(cp) < 2 {
		return 0
	}
	mcp, sum := MCP(cp, jobs), 0.0
	for i := range cp {
		sum += (cp[i] - mcp) * (cp[i] - mcp)
	}
	return math.Sqrt(sum / float64(len(cp)-1))
}
