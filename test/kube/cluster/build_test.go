package cluster

import (
	"archive/zip"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// busyboxVariable names a static busybox if it is not in the PATH.
const busyboxVariable = "HOLDFAST_KUBE_BUSYBOX"

// applets are what the image nats:…-alpine has, as far as the manifests and the guide use it.
var applets = []string{"sh", "df", "awk", "wget", "sleep", "cat", "cmp", "ls", "nc"}

// program returns the path of a program that was built.
func program(name string) string { return filepath.Join(folder, "bin", name) }

// image returns the path of an archive that containerd imports.
func image(name string) string { return filepath.Join(folder, name+".tar") }

// build builds Kubernetes, Holdfast and the broker from the module proxy, and their images.
func build() error {
	const kube = "kube"
	version, err := output(kube, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	minor := strings.Split(version, ".")[1]
	flags := func(more string) string { return "-ldflags=-s -w" + more }
	is := " -X k8s.io/component-base/version."
	for _, c := range []struct{ in, ldflags, name, of string }{
		{kube, flags(is + "gitVersion=" + version + is + "gitMajor=1" + is + "gitMinor=" + minor), "kube", "."},
		{kube, flags(""), "pause", "./pause"},
		{repository, flags(""), "holdfast", "./cmd/holdfast"},
		{repository, flags(""), "nats-server", "github.com/nats-io/nats-server/v2"},
	} {
		if _, err := output(c.in, "go", "build", "-trimpath", c.ldflags, "-o", program(c.name), c.of); err != nil {
			return err
		}
	}
	if err := os.Symlink("kube", program("kubectl")); err != nil {
		return err
	}
	if err := buildHelm(); err != nil {
		return err
	}
	if err := buildPrevious(); err != nil {
		return err
	}
	// The guide's command needs no network when its program is in the module cache.
	if _, err := output(repository, "make", "-s", "render", "OVERLAY=deploy/k8s/overlays/small"); err != nil {
		return err
	}
	return images()
}

// helm is the version of the library that test/kube renders the chart with.
const helm = "helm.sh/helm/v4/cmd/helm@v4.2.4"

// willRun reports whether -run selects a test.
func willRun(test string) (bool, error) {
	run, err := regexp.Compile(flag.Lookup("test.run").Value.String())
	return err == nil && run.MatchString(test), err
}

// buildHelm builds helm if TestChart will run.
func buildHelm() error {
	run, err := willRun("TestChart")
	if err != nil || !run {
		return err
	}
	cmd := exec.Command("go", "install", helm)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+filepath.Dir(program("helm")))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// previousVariable names a commit from which TestUpgrade upgrades, in place of the newest tag before this commit.
const previousVariable = "HOLDFAST_KUBE_PREVIOUS"

// previous is the folder of the version from which TestUpgrade upgrades.
func previous() string { return filepath.Join(folder, "previous") }

// buildPrevious builds the previous version and its image, if there is one and TestUpgrade will run.
func buildPrevious() error {
	run, err := willRun("TestUpgrade")
	if err != nil || !run {
		return err
	}
	commit := os.Getenv(previousVariable)
	if commit == "" {
		if commit, err = output(repository, "git", "tag", "--merged", "HEAD^", "--sort=creatordate"); err != nil {
			return err
		}
		commit = commit[strings.LastIndex(commit, "\n")+1:]
	}
	if commit == "" {
		return nil
	}
	if err := os.Mkdir(previous(), 0o755); err != nil {
		return err
	}
	archive := filepath.Join(folder, "previous.zip")
	if _, err := output(repository, "git", "archive", "--output="+archive, commit); err != nil {
		return err
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer files.Close()
	if err := os.CopyFS(previous(), files); err != nil {
		return err
	}
	program := filepath.Join(previous(), "bin/holdfast")
	if _, err := output(previous(), "go", "build", "-trimpath", "-o", program, "./cmd/holdfast"); err != nil {
		return err
	}
	return holdfastImage("previous", program, "docker.io/library/holdfast:previous")
}

// images writes the images that the manifests name, and the one that holds the namespaces of a pod.
func images() error {
	manifest, err := os.ReadFile(repository + "/deploy/k8s/nats/nats.yaml")
	if err != nil {
		return err
	}
	nats := regexp.MustCompile(`image: (nats:\S+)`).FindSubmatch(manifest)
	if nats == nil {
		return errors.New("deploy/k8s/nats/nats.yaml names no image of nats")
	}
	box, err := busybox()
	if err != nil {
		return err
	}
	broker := []string{"-tag", "docker.io/library/" + string(nats[1]), "-entrypoint", "nats-server",
		"/usr/local/bin/nats-server=" + program("nats-server")}
	for _, applet := range applets {
		broker = append(broker, "/bin/"+applet+"="+box)
	}
	for name, args := range map[string][]string{
		"pause": {"-tag", pauseImage, "-user", "65535:65535", "-entrypoint", "/pause", "/pause=" + program("pause")},
		"nats":  broker,
	} {
		if err := writeImage(name, args...); err != nil {
			return err
		}
	}
	return holdfastImage("holdfast", program("holdfast"), "docker.io/library/holdfast:0.1.0",
		"registry.example.com/holdfast:0.1.0")
}

// holdfastImage writes an image as deploy/Dockerfile makes it.
func holdfastImage(name, program string, tags ...string) error {
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	args := []string{"-user", "65532:65532", "-entrypoint", "/holdfast"}
	for _, tag := range tags {
		args = append(args, "-tag", tag)
	}
	return writeImage(name, append(args, "/holdfast="+program, certificates+"="+certificates)...)
}

func writeImage(name string, args ...string) error {
	_, err := output(".", program("kube"), append([]string{"image", "-o", image(name)}, args...)...)
	return err
}

// output runs a command in a folder and returns what it printed, without the last line break.
func output(in, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", cmd, err, out, problems.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// busybox returns the path of a busybox that needs no library.
func busybox() (string, error) {
	path := os.Getenv(busyboxVariable)
	if path == "" {
		found, err := exec.LookPath("busybox")
		if err != nil {
			return "", err
		}
		path = found
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s is not static", path)
		}
	}
	return path, nil
}
