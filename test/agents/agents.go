// Package agents tests the bridges with the real agents, with `make agents`.
package agents
