package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The programs that node.sh runs, for [nodeScript]: each says what it was called with. A file holds the free space of
// the volume; a pause of the script makes room in it, or lasts until the script ends.
const (
	nodeDF = `#!/bin/sh
echo "df $*" >>"$CALLS"
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "/dev/x 10485760 1 $(cat "$FREE") 99% /data"
`
	nodeSleep = `#!/bin/sh
[ -n "$ROOM" ] || exec tail -f /dev/null
echo "$ROOM" >"$FREE"
`
	nodeProgram = `#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
exit "$CODE"
`
)

// nodeScript runs deploy/k8s/nats/node.sh with a volume of its own.
type nodeScript struct {
	*exec.Cmd
	t     *testing.T
	calls string
}

// newNodeScript returns the script with so many KiB free. env: ROOM is the space after a pause, in KiB, empty for a
// pause without an end; CODE is the exit code of the programs.
func newNodeScript(t *testing.T, verb, free string, env ...string) *nodeScript {
	t.Helper()
	dir := t.TempDir()
	s := &nodeScript{t: t, calls: filepath.Join(dir, "calls")}
	file := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"df": nodeDF, "sleep": nodeSleep, "wget": nodeProgram,
		"nats-server": nodeProgram, "free": free, "calls": ""} {
		file(name, text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.Cmd = exec.CommandContext(ctx, "sh", filepath.Join(deployFolder, "nats/node.sh"), verb)
	s.Env = append(os.Environ(), append(env, "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+s.calls,
		"FREE="+filepath.Join(dir, "free"))...)
	// of its own, to end the pause with it
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.Cancel = func() error { return syscall.Kill(-s.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		if s.Process != nil {
			_ = s.Cancel()
		}
		cancel()
	})
	return s
}

// ran returns what the script ran, but for checks of the volume.
func (s *nodeScript) ran() []string {
	s.t.Helper()
	body, err := os.ReadFile(s.calls)
	if err != nil {
		s.t.Fatal(err)
	}
	checks := 0
	calls := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(body)), "\n"), func(call string) bool {
		if call == "df -Pk /data" {
			checks++
			return true
		}
		return false
	})
	if checks == 0 {
		s.t.Error("nothing checked the volume of /data")
	}
	return calls
}

const (
	nodeReserve = "1048576" // KiB: that of node.sh
	nodeLess    = "1048575"
	nodeProbe   = "wget -q -O - http://127.0.0.1:8222/healthz?js-enabled-only=true"
	nodeServer  = "nats-server --config /etc/nats/nats.conf"
)

// TestANodeServesWithAReserve: the liveness probe ends a node whose volume has less than the reserve, whatever the
// broker answers, and the node starts when there is room again.
func TestANodeServesWithAReserve(t *testing.T) {
	for _, c := range []struct {
		name, verb, free, answer string
		code                     int
		ran                      []string
	}{
		{"a living node with room", "live", nodeReserve, "0", 0, []string{nodeProbe}},
		{"a broker that is not healthy", "live", nodeReserve, "1", 1, []string{nodeProbe}},
		{"a healthy broker without the reserve", "live", nodeLess, "0", 1, nil},
		{"a full disk", "live", "0", "0", 1, nil},
		{"a start with room", "start", nodeReserve, "0", 0, []string{nodeServer}},
		{"a start before there is room", "start", nodeLess, "0", 0, []string{nodeServer}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newNodeScript(t, c.verb, c.free, "CODE="+c.answer, "ROOM="+nodeReserve, "NATS_CONFIG=")
			out, err := s.CombinedOutput()
			if code := s.ProcessState.ExitCode(); code != c.code || err != nil && code < 0 {
				t.Errorf("exit code %d, want %d: %v\n%s", code, c.code, err, out)
			}
			if got := s.ran(); !slices.Equal(got, c.ran) {
				t.Errorf("ran %q, want %q", got, c.ran)
			}
			want := "the disk of /data is nearly full: " + c.free + " KiB free, " + nodeReserve + " needed"
			if printed := bytes.Contains(out, []byte(want)); printed != (c.free != nodeReserve) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestANodeThatWaitsForRoomEnds: a pod can be removed while its node waits for room.
func TestANodeThatWaitsForRoomEnds(t *testing.T) {
	s := newNodeScript(t, "start", nodeLess, "CODE=0", "ROOM=")
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting for room") {
		t.Fatalf("says %q, %v", line, err)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := s.ran(); len(got) > 0 {
		t.Errorf("ran %q", got)
	}
}
