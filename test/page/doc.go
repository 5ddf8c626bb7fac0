// Package page drives the daemon's page in a real browser, with real daemons behind it. The
// tests need chromium; without it they are left out and say so, unless GRIDNODE_BROWSER=must.
package page
