// Package patience says for how long a look-up in the DHT waits for a site that does not answer: real
// nodes and the model of virtual networks alike.
//
// kad-dht's look-up ends when the nearest sites it has heard of have answered. While one of them is silent
// it goes on and asks sites that are farther and farther away, until that one's time is up: a dead site
// costs seconds, and dozens of requests. Here the look-up then passes it over, and ends as if it
// were not there. It is named in the result, as it may only be slow, and whether it is dead is found out
// afterwards.
package patience

import "gridnode/grid"

// Span is how long a request is under way until its look-up does not wait for it any more: a few round
// trips around the world.
const Span = grid.Second
