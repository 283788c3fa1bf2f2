package natstest

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Limits of a busy disk.
const (
	syncEveryMS = 200
	syncIdleMS  = 100 // how long a sync may take on an idle disk
)

// FeelDisk measures beside a test, until it ends, how long the disk of its temporary files stood still: what syncs of a
// small file took beyond the time on an idle disk. A broker that syncs every write stands still for as long, and the
// leases of all its processes with it.
func FeelDisk(t testing.TB) (lost func() time.Duration) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "pulse"))
	if err != nil {
		t.Fatal(err)
	}
	var sum atomic.Int64
	var running sync.WaitGroup
	end := make(chan struct{})
	running.Go(func() {
		tick := time.NewTicker(syncEveryMS * time.Millisecond)
		defer tick.Stop()
		for {
			began := time.Now()
			_, err := f.WriteAt([]byte{1}, 0)
			if err == nil {
				err = f.Sync()
			}
			if err != nil {
				t.Errorf("natstest: sync %s: %v", f.Name(), err)
				return
			}
			sum.Add(int64(max(0, time.Since(began)-syncIdleMS*time.Millisecond)))
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(end)
		running.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() time.Duration { return time.Duration(sum.Load()) }
}
