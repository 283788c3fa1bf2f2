package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// groups is where the control groups of version 1 are mounted, one folder for each hierarchy.
const groups = "/sys/fs/cgroup"

// hierarchies returns the folders in which control groups are made.
func hierarchies() (all []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup" && filepath.Dir(f[1]) == groups {
			all = append(all, f[1])
		}
	}
	for _, name := range []string{"cpu", "memory", "pids"} {
		if !slices.ContainsFunc(all, func(h string) bool { return strings.Contains(filepath.Base(h), name) }) {
			return nil, fmt.Errorf("%s has no control groups of version 1 for %s", groups, name)
		}
	}
	return all, nil
}

// groupOf is the control group of a node, from the root of a hierarchy.
func groupOf(node string) string { return "/" + filepath.Base(folder) + "/" + node }

// makeGroups makes the control groups of a node. One of cpuset has no processors before it gets some.
func makeGroups(node string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		for _, group := range []string{filepath.Dir(groupOf(node)), groupOf(node)} {
			if err := os.Mkdir(h+group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
				value, err := os.ReadFile(filepath.Join(h, name))
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(h+group, name), value, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeGroups removes all control groups of the tests, also those that runc makes beside the hierarchies. A group with
// a process is not removed.
func removeGroups() error {
	tops, err := filepath.Glob(groups + "/*" + filepath.Dir(groupOf("node")))
	if err != nil {
		return err
	}
	var errs []error
	for _, top := range tops {
		var found []string
		errs = append(errs, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				found = append(found, path)
			}
			return err
		}))
		for _, group := range slices.Backward(found) {
			if err := syscall.Rmdir(group); err != nil {
				errs = append(errs, fmt.Errorf("the control group %s is left: %w", group, err))
			}
		}
	}
	return errors.Join(errs...)
}
