//go:build agents

package agents

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

func TestACPGemini(t *testing.T) { kills(t, &realGemini) }

func TestACPCodex(t *testing.T) { kills(t, &realCodex) }

var realGemini = acpAgent{name: "gemini-cli", pkg: "@google/gemini-cli@0.61.0", program: ".bin/gemini",
	args: []string{"--acp"}, auth: "gemini-api-key", mode: "autoEdit", forgets: true, byMinute: true,
	prepare: func(w *workplace) []string {
		// Its clean-up at a start deletes a session that was loaded before, and has had no message since.
		w.write(filepath.Join(w.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":`+
			`"gemini-api-key"}},"telemetry":{"enabled":false},"privacy":{"usageStatisticsEnabled":false},`+
			`"general":{"disableAutoUpdate":true,"enableAutoUpdate":false,"sessionRetention":{"enabled":false}}}`)
		return []string{"GEMINI_API_KEY=mock-key", "GOOGLE_GEMINI_BASE_URL=" + w.model.Root(),
			"GEMINI_CLI_TRUST_WORKSPACE=true"}
	},
	shell: func(command string) mockmodel.Step {
		// It runs what is behind a "sh -c" at the beginning, without the shell.
		return mockmodel.Tool("run_shell_command", object{"command": "true && " + command, "description": "a command"})
	},
}

var realCodex = acpAgent{name: "codex-acp", pkg: "@agentclientprotocol/codex-acp@2.6.0", program: ".bin/codex-acp",
	mode: "read-only",
	prepare: func(w *workplace) []string {
		w.write(filepath.Join(w.home, ".codex", "config.toml"), fmt.Sprintf(`model = "mock"
model_provider = "mock"
approval_policy = "on-request"
approvals_reviewer = "user"
sandbox_mode = "read-only"
[model_providers.mock]
name = "Mock"
base_url = %q
wire_api = "responses"
env_key = "MOCK_KEY"
`, w.model.URL()))
		return []string{"MOCK_KEY=mock-key", "OPENAI_API_KEY=mock-key", "CODEX_HOME=" + w.home + "/.codex"}
	},
	shell: func(command string) mockmodel.Step {
		return mockmodel.Tool("exec_command", object{"cmd": command, "sandbox_permissions": "require_escalated",
			"justification": "a test"})
	},
}
