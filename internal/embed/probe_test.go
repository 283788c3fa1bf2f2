package embed

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestNodeWithoutJetStreamIsNotReady: a broker that switched JetStream off, as it does when its disk is full, fails the
// readiness and the liveness probe of its pod.
func TestNodeWithoutJetStreamIsNotReady(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(settings, []byte(`http: "127.0.0.1:-1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Start(context.Background(), Config{Dir: t.TempDir(), File: settings})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	asked := map[string]string{}
	for probe, c := range map[string]struct{ file, pattern string }{
		"readiness": {"nats.yaml", `readinessProbe:\s+exec:\s+command: \[[^\]]*http://127\.0\.0\.1:8222(/[^" ]*)`},
		"liveness":  {"node.sh", `http://127\.0\.0\.1:8222(/[^" ]*)`},
	} {
		body, err := os.ReadFile(filepath.Join("../../deploy/k8s/nats", c.file))
		if err != nil {
			t.Fatal(err)
		}
		path := regexp.MustCompile(c.pattern).FindSubmatch(body)
		if path == nil {
			t.Fatalf("the %s probe in %s asks no URL", probe, c.file)
		}
		asked[probe] = string(path[1])
	}
	check := func(state string, want int) {
		t.Helper()
		for probe, path := range asked {
			// The broker gives itself one millisecond to find out that it accepts connections. It answers 500 if the
			// machine was busy meanwhile.
			got := http.StatusInternalServerError
			for got == http.StatusInternalServerError {
				got = statusOf(t, "http://"+s.srv.MonitorAddr().String()+path)
			}
			if got != want {
				t.Errorf("%s, the %s probe: %d, want %d", state, probe, got, want)
			}
		}
	}
	check("with JetStream", http.StatusOK)
	if err := s.srv.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	check("without JetStream", http.StatusServiceUnavailable)
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}
