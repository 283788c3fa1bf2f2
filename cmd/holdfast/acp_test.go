package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestNameOfAnAgent: agents that one program fetches have names of their own.
func TestNameOfAnAgent(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"opencode acp":              "opencode",
		"/usr/bin/claude-agent-acp": "claude-agent-acp",
		"npx -y @agentclientprotocol/claude-agent-acp@0.49.0 --debug":     "claude-agent-acp",
		"/opt/node/bin/npx --yes codex-acp":                               "codex-acp",
		"npx.cmd @google/gemini-cli --acp":                                "gemini-cli",
		"npx -p @google/gemini-cli@latest gemini --acp":                   "gemini",
		"npx --package=@google/gemini-cli gemini --acp":                   "gemini",
		"npx github:owner/some-agent#v1":                                  "some-agent",
		"bunx codex-acp@2":                                                "codex-acp",
		"bun x codex-acp":                                                 "codex-acp",
		"bun agent.ts":                                                    "bun",
		"pnpm dlx codex-acp":                                              "codex-acp",
		"pnpm start":                                                      "pnpm",
		"npm exec -- codex-acp":                                           "codex-acp",
		"uvx --python 3.12 fast-agent-acp==1.2":                           "fast-agent-acp",
		"uvx some-agent[acp]@latest acp":                                  "some-agent",
		"uvx --from git+https://example.com/owner/agents.git the-agent x": "the-agent",
		"uvx git+https://example.com/owner/agents.git@v2":                 "agents",
		"uv tool run some-agent":                                          "some-agent",
		"uv run some.py":                                                  "uv",
		"npx -y":                                                          "npx",
		"npx":                                                             "npx",
		"npx ..":                                                          "npx",
		"npx " + strings.Repeat("x", 1000):                                "agent",
	} {
		if got := agentOf(strings.Fields(command)); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestSentences: a warning is one sentence, and is said once until another one follows.
func TestSentences(t *testing.T) {
	t.Parallel()
	var output []string
	log := slog.New(&sentences{print: func(s string) { output = append(output, s) }, last: &lastSentence{}})
	log.Info("not said")
	for range 3 {
		log.With("id", "h").WithGroup("g").Warn("still trying", "err", "no broker")
	}
	log.Error("lost")
	log.With("id", "h").Warn("still trying", "err", "no broker")
	want := []string{"still trying, id h, err no broker", "lost", "still trying, id h, err no broker"}
	if !slices.Equal(output, want) {
		t.Errorf("%q", output)
	}
}
