//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestBridgeSpawns: the bridge starts its server, and ends it when it ends itself. It ends if the server cannot be
// started.
func TestBridgeSpawns(t *testing.T) {
	dir := t.TempDir()
	run := func(ctx context.Context, args ...string) (int, string) {
		var out bytes.Buffer
		p := &Program{Args: append([]string{"bridge", "opencode", "--url", "http://127.0.0.1:1"}, args...),
			Stdout: &out, Stderr: &out}
		return p.Run(ctx), out.String()
	}
	if code, output := run(t.Context(), "--spawn", "--", dir+"/none"); code != exitFailed ||
		!strings.Contains(output, "none") {
		t.Errorf("exit code %d: %s", code, output)
	}
	for _, args := range [][]string{{"--spawn"}, {"--spawn", "x"}, {"--", "x"}} {
		if code, output := run(t.Context(), args...); code != exitUsage {
			t.Errorf("%q: exit code %d: %s", args, code, output)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		script := "echo the server speaks; touch " + dir + "/began; exec sleep 600"
		_, output := run(ctx, "--spawn", "--", "/bin/sh", "-c", script)
		ended <- output
	}()
	natstest.Until(t, "the server runs", func() bool {
		_, err := os.Stat(dir + "/began")
		return !errors.Is(err, os.ErrNotExist)
	})
	cancel()
	if output := <-ended; !strings.Contains(output, "the server speaks") {
		t.Errorf("said: %s", output)
	}
}

// TestBridgePlugin: the server that a bridge starts has the address and the secret with which its plugin asks. An
// address beyond loopback is refused, and so is a server without a secret that the bridge did not start.
func TestBridgePlugin(t *testing.T) {
	t.Setenv(opencode.PluginTokenVar, "")
	dir := t.TempDir()
	run := func(ctx context.Context, args ...string) (int, string) {
		var out bytes.Buffer
		p := &Program{Args: append([]string{"bridge", "opencode"}, args...), Stdout: &out, Stderr: &out}
		return p.Run(ctx), out.String()
	}
	if code, output := run(t.Context(), "plugin"); code != 0 || !strings.Contains(output, "tool.execute.before") {
		t.Errorf("the plugin: %d, %s", code, output)
	}
	for args, want := range map[string]string{
		"--plugin 127.0.0.1:0":                    "set HOLDFAST_PLUGIN_TOKEN",
		"--plugin 0.0.0.0:0 --spawn -- /bin/true": "loopback",
		"--drive queue":                           "write --plugin",
		"--plugin 4097 --spawn -- /bin/true":      "host:port",
	} {
		if code, text := run(t.Context(), strings.Fields(args)...); code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: %d, %s", args, code, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		script := "echo $HOLDFAST_PLUGIN_URL $HOLDFAST_PLUGIN_TOKEN >" + dir + "/new; mv " + dir + "/new " + dir +
			"/began; exec sleep 600"
		_, text := run(ctx, "--url", "http://127.0.0.1:1", "--plugin", "127.0.0.1:0", "--spawn", "--", "/bin/sh", "-c",
			script)
		ended <- text
	}()
	var has []byte
	natstest.Until(t, "the server runs", func() (began bool) {
		var err error
		has, err = os.ReadFile(dir + "/began")
		return err == nil
	})
	address, token, _ := strings.Cut(strings.TrimSpace(string(has)), " ")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/call", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("the server has %s: %v", has, err)
	}
	_ = res.Body.Close()
	// the token is known, and the request says nothing
	if res.StatusCode != http.StatusBadRequest || len(token) < 20 {
		t.Errorf("status %d; the server has %s", res.StatusCode, has)
	}
	cancel()
	<-ended
}
