package events

// Tokens counts the tokens of one model call.
type Tokens struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
}

// UsageReported is the usage of a turn's last model call; the newest report stands.
type UsageReported struct {
	Turn                string `json:"turn"`
	Model               string `json:"model"`
	Tokens              Tokens `json:"tokens"`
	InputIncludesCached bool   `json:"input_includes_cached,omitempty"`
	ContextLimit        int64  `json:"context_limit,omitempty"` // tokens
}

// Kind implements [Fact].
func (UsageReported) Kind() Kind { return "usage.reported" }

// Subject implements [Fact].
func (f UsageReported) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f UsageReported) Validate() error {
	t := f.Tokens
	for _, n := range []int64{t.Input, t.CacheRead, t.CacheWrite, t.Output, t.Reasoning} {
		if n < 0 || n > policyTokensMax {
			return bad("tokens", "%d: want 0 to %d", n, policyTokensMax)
		}
	}
	return mayID("turn", f.Turn)
}

// Used returns how many tokens of context the next call starts with: the input and the cached tokens, never the output.
// If the input includes the cached tokens, it is the input alone, or the tokens read from the cache if there is no
// input.
func (f UsageReported) Used() int64 {
	t := f.Tokens
	switch {
	case !f.InputIncludesCached:
		return t.Input + t.CacheRead + t.CacheWrite
	case t.Input > 0:
		return t.Input
	default:
		return t.CacheRead
	}
}
