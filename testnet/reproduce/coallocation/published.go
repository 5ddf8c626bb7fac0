package coallocation

import "gridnode/testnet/reproduce"

// What the paper on processor co-allocation prints. Figures 3, 4 and 6 to 10 are plots
// without numbers; tables III to V and the text give these.

// publishedSpeeds is table III: the execution time of an application of 30 s in Leiden,
// together with each of the others.
var publishedSpeeds = []struct {
	name, cluster string
	seconds       reproduce.Number
}{{"Vrije", "vrije", 32}, {"Delft", "delft", 32}, {"MultimediaN", "multimedian", 32}, {"Amsterdam", "amsterdam", 35}}

// publishedWave is the text of section VI-A: what Wave takes on one and on four clusters.
var publishedWave = [4]reproduce.Number{200, reproduce.None, reproduce.None, 750}

// publishedSaturation is table IV: the end of the interval of net utilizations, 5 %
// wide, in which saturation sets in.
var publishedSaturation = map[string]reproduce.Number{
	"WF": 90, "FCM Prime": 95, "FCM Poisson": 85, "FCM Wave": 75, "FCM Wave, limit 2": 80,
}

// publishedChange is table V: a change in the average job response time, of the real runs
// and of the simulation at that net utilization.
var publishedChange = []struct {
	application string
	change, at  reproduce.Number
	text        string
}{{"prime", -16, 77.5, "75–80 %"}, {"poisson", -5, 65, "65 %"}, {"wave", 50, 70, "70 %"}}

// publishedGap is the text of section VII-A: by how many seconds the mean response is
// longer by FCM than by CA, without Delft and with it.
var publishedGap = [2]reproduce.Number{50, 230}

// publishedSaturationCA is the text of section VII-B: the end of the interval in which the
// system saturates with jobs of 32, 48 and 64 nodes, without Delft (75–80 %) and with it
// (60–70 %).
var publishedSaturationCA = [2]reproduce.Number{80, 70}
