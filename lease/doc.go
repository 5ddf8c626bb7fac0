// Package lease lends and borrows processors.
package lease
