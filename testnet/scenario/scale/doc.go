// Package scale measures how the messages of a federation grow with its sites: a Config
// is one federation of table 1 again and again, Run measures it for a span, and a
// Result says what was sent for what, and by whom. Measurements of live nodes fill the
// same Counts and Jobs.
package scale
