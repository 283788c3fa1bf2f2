package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// version is that of OpenCode for which the bridge was made.
const version = "1.18.33"

// OpenCode returns the path of the program, which npm installs if it is not there. Errors: npm has none for this
// system, or cannot install it.
func OpenCode() (path string, err error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return fetch("opencode-ai@"+version, "opencode-"+version,
		filepath.Join("opencode-"+runtime.GOOS+"-"+arch, "bin", "opencode"))
}

// fetch returns the path of a program in a package. npm puts the package into a folder of the user's cache, once; its
// install scripts do not run. The folder is whole: it is renamed to its place.
func fetch(pkg, folder, program string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	all := filepath.Join(cache, "holdfast-agents")
	place := filepath.Join(all, folder)
	path = filepath.Join(place, "node_modules", program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(all, "install-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	npm := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", pkg)
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", pkg, err, out)
	}
	if err := os.Rename(dir, place); err != nil && !errors.Is(err, os.ErrExist) {
		// another run has not put it there meanwhile
		if _, there := os.Stat(path); there != nil {
			return "", err
		}
	}
	_, err = os.Stat(path)
	return path, err
}
