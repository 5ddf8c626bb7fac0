package coallocation

import "gridnode/testnet/reproduce"

// What the paper on processor co-allocation prints. Figures 7, 8 and 10 are plots
// without numbers; tables IV and V and the text give these.

// publishedSaturation is table IV: the end of the interval of net utilizations, 5 %
// wide, in which saturation sets in.
var publishedSaturation = map[string]reproduce.Number{
	"WF": 90, "FCM Prime": 95, "FCM Poisson": 85, "FCM Wave": 75, "FCM Wave, limit 2": 80,
}

// publishedChange is table V: a change in the average job response time and the net
// utilization of the simulation at which it occurs.
var publishedChange = []struct {
	application string
	change, at  reproduce.Number
	text        string
}{{"prime", -16, 77.5, "75–80 %"}, {"poisson", -5, 65, "65 %"}, {"wave", 50, 70, "70 %"}}

// publishedSaturationCA is the text of section VII-B: where the system saturates with
// jobs of 32, 48 and 64 nodes, without Delft and with it.
var publishedSaturationCA = [2]string{"75–80 %", "60–70 %"}
