//go:build agents

package agents

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/mockmodel"
)

// Gemini CLI 0.61.0 does not find a session again after a kill: it answers session/load with an error. The request of
// the turn gets an error that says so.
func TestACPGemini(t *testing.T) {
	realGemini.path(t)
	t.Run("3 s into the first turn", func(t *testing.T) { inTheFirstTurn(t, &realGemini) })
	t.Run("the broker is unreachable", func(t *testing.T) { withoutABroker(t, &realGemini) })
	t.Run("at a permission", func(t *testing.T) {
		d := sit(t, &realGemini, true)
		d.model.Script("asks", realGemini.script(asksOf("lost"))...)
		turn := d.begins("asks")
		d.asked()
		d.kill()
		m := d.reply(turn, "session/prompt")
		if m.Error == nil || !strings.Contains(m.Error.Message,
			"session/load: Internal error: No previous sessions found") {
			t.Errorf("the turn ends with %s, %+v", m.Result, m.Error)
		}
		d.until("the turn has failed", func(s *session.State) bool {
			return s.Turn == nil && s.LastTurn != nil && len(s.PendingPrompts()) == 0
		})
		d.check(1)
		if n := d.ran("lost"); n != 0 {
			t.Errorf("the command ran %d times", n)
		}
	})
}

func TestACPCodex(t *testing.T) { kills(t, &realCodex) }

var realGemini = acpAgent{name: "gemini-cli", pkg: "@google/gemini-cli@0.61.0", program: ".bin/gemini",
	args: []string{"--acp"}, auth: "gemini-api-key", mode: "autoEdit", forgets: true,
	prepare: func(w *workplace) []string {
		w.write(filepath.Join(w.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":`+
			`"gemini-api-key"}},"telemetry":{"enabled":false},"privacy":{"usageStatisticsEnabled":false},`+
			`"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
		return []string{"GEMINI_API_KEY=mock-key", "GOOGLE_GEMINI_BASE_URL=" + w.model.Root(),
			"GEMINI_CLI_TRUST_WORKSPACE=true"}
	},
	shell: func(command string) mockmodel.Step {
		return mockmodel.Tool("run_shell_command", object{"command": command, "description": "a command"})
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
