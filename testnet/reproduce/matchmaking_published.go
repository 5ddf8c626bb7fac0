package reproduce

// publishedTable3 is table 3: AWT and ASD by architecture; central is not in it.
var publishedTable3 = map[string][2]Number{
	"cern": {44, 6}, "condor": {7681, 1610}, "dmm": {1283, 298}, "fcondor": {2570, 255}, "sep-c": {1938, 590},
}
