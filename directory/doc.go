// Package directory is the federation directory: quotes, a range index over them,
// and gossiped load.
package directory
