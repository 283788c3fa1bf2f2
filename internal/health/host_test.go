package health

import (
	"net/http"
	"testing"
)

// A web page whose name resolves to this machine cannot read the responses of a loopback server.
func TestHostIsChecked(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0", "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run(t.Context()) }()
	for host, want := range map[string]int{"": 200, "localhost": 200, "localhost:80": 200, "127.0.0.1": 200,
		"[::1]:8480": 200, "[::1]": 200, "127.9.9.9:1": 200,
		"evil.example": 421, "evil.example:8480": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"10.0.0.1": 421, "[fe80::1]": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("host %q: %s, want %d: %v", host, resp.Status, want, err)
		}
	}
}

// On another address, probes and Prometheus use the names of services.
func TestHostIsNotCheckedElsewhere(t *testing.T) {
	s, err := Listen(t.Context(), "0.0.0.0:0", "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if next := http.NewServeMux(); s.local(next) != http.Handler(next) {
		t.Error("the Host of requests is checked")
	}
}
