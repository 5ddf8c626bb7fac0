// Package patience says for how long a look-up in the DHT waits for a site that does not answer, and a
// connection for one that is silent: real nodes and the model of virtual networks alike.
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

// Each end of a connection over TCP over which nothing has come for Silence asks for a sign of life, and
// ends the connection after Answer without one: so a machine without power is missed.
const (
	Silence = 15 * grid.Second
	Answer  = 10 * grid.Second
)
