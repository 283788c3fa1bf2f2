package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestReleaseArchives: an archive for each system has the program under the name of its system, and the checksums are
// those of the archives. A program of the test stands for the compiler: it writes what it was asked to build.
func TestReleaseArchives(t *testing.T) {
	dir := t.TempDir()
	compiler := filepath.Join(dir, "go")
	script := "#!/bin/sh\n" + `for last; do true; done; while [ "$1" != -o ]; do shift; done
echo "$GOOS $GOARCH $last" >"$2"; chmod +x "$2"` + "\n"
	if err := os.WriteFile(compiler, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	release := func(dist string) []byte {
		t.Helper()
		cmd := exec.Command("../../deploy/release.sh", "linux/arm64", "windows/amd64")
		cmd.Env = append(os.Environ(), "GO="+compiler, "DIST="+dist)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return sums
	}
	dist := filepath.Join(dir, "dist")
	sums := release(dist)
	for name, want := range map[string]string{
		"holdfast_" + version + "_linux_arm64":   "/holdfast\x00linux arm64 ./cmd/holdfast\n",
		"holdfast_" + version + "_windows_amd64": "/holdfast.exe\x00windows amd64 ./cmd/holdfast\n",
	} {
		binary, built, _ := bytes.Cut([]byte(want), []byte{0})
		archive := filepath.Join(dist, name+".tar.gz")
		got, err := exec.Command("tar", "-xzOf", archive, name+string(binary)).Output()
		if err != nil || !bytes.Equal(got, built) || !bytes.Contains(sums, []byte("  "+name+".tar.gz\n")) {
			t.Errorf("%s: %q, %v; checksums:\n%s", name, got, err, sums)
		}
		if _, err := exec.Command("tar", "-xzOf", archive, name+"/LICENSE").Output(); err != nil {
			t.Errorf("%s has no licence: %v", name, err)
		}
	}
	if again := release(filepath.Join(dir, "again")); !bytes.Equal(again, sums) {
		t.Errorf("the same commit gives other bytes:\n%s\n%s", sums, again)
	}
}
