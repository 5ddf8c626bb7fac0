package coallocation

import "gridnode/testnet/reproduce"

// readings are what the paper leaves open, and how it was filled in.
var readings = []reproduce.Reading{
	{
		Of: "run times of Prime and Poisson within a cluster", Sentence: "We set the total execution time of the application to 180 s. in a single cluster irrespective of its CCR",
		Chosen: "those of the synthetic application; Wave takes 200 s, as printed",
	},
	{
		Of: "how much they communicate", Sentence: "W-Prime matches CCR-0.1, W-Poisson matches CCR-0.25, and W-Wave matches CCR-4",
		Chosen: "CCR 0.25 and 4; Prime has 0, as “the Prime Number application is not affected by it at all”",
	},
	{
		Of: "by how much splitting slows an application down", Sentence: "the communication part is multiplied by a specific factor that is calculated from the real runs of the synthetic application on the corresponding co-allocated clusters",
		Chosen: "the factor, which is not printed, grows with the latency of the slowest way and the square root of the number of further clusters, scaled to the 200 s and 750 s of Wave",
	},
	{
		Of: "when a system is saturated", Sentence: "jobs are piled up in the queue and the wait times constantly increase without bounds",
		Chosen: "over a day that shows as a mean wait of more than one and a half run times",
	},
	{
		Of: "startup", Sentence: "the startup overhead of jobs is 10 seconds on average regardless of the number of clusters combined",
		Chosen: "10 s, with the nodes taken",
	},
	{
		Of: "how often the placement queue is scanned", Sentence: "The scheduler regularly scans the queue from head to tail to see whether it is able to place any job",
		Chosen: "every 10 s; a job that cannot be placed keeps its place in the queue",
	},
	{
		Of: "the background load of the real runs", Sentence: "we tried to maintain it between 10% and 30% across the system by injecting or killing dummy jobs to the system",
		Chosen: "jobs of 1 to 16 nodes and a quarter of an hour that arrive by themselves, 20 % of the nodes on average; what would be above 30 % is not submitted, what is missing below 10 % is made up for",
	},
	{
		Of: "what KOALA knows of the nodes that others use", Sentence: "KOALA tries to allocate nodes using the resource managers of the clusters in question",
		Chosen: "it looks at what is idle every 30 s, so that a claim may fail, and is repeated after 1 s, 2 s, …",
	},
	{
		Of: "the GbE network without Delft", Sentence: "we include the cluster in Delft, exclude the one in Leiden, and let the inter-cluster communication use GbE",
		Chosen: "its latencies are printed for the ways to Delft only, so combinations of several clusters count that include Delft",
	},
}
