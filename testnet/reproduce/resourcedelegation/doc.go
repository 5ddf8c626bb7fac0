// Package resourcedelegation repeats the evaluation of The gain of resource delegation
// (2009): tables 1 and 2, and how machines change their sizes.
package resourcedelegation
