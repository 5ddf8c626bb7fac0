// Package point says where within the steps of a daemon a fault can strike, and counts how often
// one has.
//
// A daemon has a step because something came in, because of a timer, or as it comes up. In a step
// it saves records, all at once, and then gives its other orders, one after the other. For each
// cause, each kind of records that it saves or forgets, and each kind of messages that it sends,
// tasks that it starts and whatever else it orders, there are two points: right before, so that
// what stood before it has happened and it has not, and right after. Right before records are
// saved means that the store fails.
//
// Which records and orders meet in a step is chance: timers go off together, and a daemon that comes
// up takes up all at once. Therefore pairs of them are no points, but for those in which the order
// carries out what the record promises: "between saving lease and sending lease.grant". What is
// recovered must then do it again, or do without.
//
// A step is taken with Counts.Take. Chance then says how likely a daemon is to die where in
// it, the likelier the seldomer the points there come, by a census of many runs; Hit
// notes that it has.
package point
