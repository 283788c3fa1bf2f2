//go:build clients

package cell

// isolated is off with other clients: what installs them needs the network.
const isolated = false
