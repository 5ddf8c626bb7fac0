// Package logging is what stands between the parts of a daemon and its log: whoever can
// cause a record must not fill the disk with it.
package logging
