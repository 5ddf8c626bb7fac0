package gridfederation

import "gridnode/testnet/reproduce"

// chosenReadings are the choices where the text is open, each with the sentence that it
// goes by. What each of them does stands where it is named.
func chosenReadings() []reproduce.Reading {
	return []reproduce.Reading{
		{ // daysByLoad
			Of:       "which two days",
			Sentence: "the simulation experiments were conducted by utilizing workload trace data over the total period of two days (in simulation units) at all the resources",
			Chosen:   "of each log the two days with about the number of jobs of table 2 (within a twentieth) whose processor-seconds come closest to what it implies (utilisation / share accepted); the same days for all experiments",
		},
		{ // chargesFor
			Of:       "what a job costs",
			Sentence: "the cluster owner charges c_i per unit time or per unit of million instructions (MI) executed",
			Chosen:   "eq. 3 × processors: all instructions of a job are charged, its communication is not",
		},
		{ // expected
			Of:       "the response time of a rejected job",
			Sentence: "includes the expected budget spent and response time for the rejected jobs assuming they are executed on the originating resource",
			Chosen:   "what the originating resource expects as it rejects: the finish that it could have promised",
		},
		{ // market.advancePaper
			Of:       "which sites are asked",
			Sentence: "after iterating up to the greatest r such that GFA could feasibly complete the job then the job is dropped",
			Chosen:   "all up to the last that could do the job if it were idle, those between that could not, too; home without a message",
		},
		{ // lrms.EASY
			Of:       "how a site decides",
			Sentence: "the remote GFA makes a decision immediately upon receiving a request as to whether it can accept the job or not",
			Chosen:   "it promises the earliest gap that delays no earlier promise",
		},
		{ // outcome.accepted
			Of:       "the average acceptance",
			Sentence: "the average job acceptance rate, over all resources in the federation",
			Chosen:   "the share of all jobs that are accepted",
		},
	}
}
