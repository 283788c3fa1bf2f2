package sim_test

import (
	"runtime/debug"
	"testing"
)

// The heap of a world is so small that, with the default, the collector runs all the time.
const gcPercent = 800

func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	m.Run()
}
