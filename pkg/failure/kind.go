package failure

import "slices"

// Kinds of failures of a turn or a compaction. A kind that is not here is lawful everywhere, and retryable.
const (
	Aborted         = "aborted"          // somebody ended it on purpose
	Authentication  = "authentication"   // the provider does not know the key, or does not let it do this
	BadSummary      = "bad_summary"      // a compaction's summary is empty, or a bare JSON object
	ContextExceeded = "context_exceeded" // more than the model takes in; compaction's to solve
	EmptyOutput     = "empty_output"     // the model ended without a word and without a call
	Interrupted     = "interrupted"      // its process died
	InvalidRequest  = "invalid_request"  // the provider refuses it as it is, and says nothing that fits another kind
	ModelNotFound   = "model_not_found"  // the provider has no such model
	ModelRefusal    = "model_refusal"    // the provider's filter, or the model, will not answer this
	Network         = "network"          // no answer: refused, reset, timed out
	Quota           = "quota"            // paid for no more; time alone does not help
	RateLimit       = "rate_limit"       // too much at once; time helps
	RuntimeNotReady = "runtime_not_ready"
	ServerError     = "server_error"     // the provider's own fault, or too much to do
	Stalled         = "stalled"          // nothing came for too long
	StreamTruncated = "stream_truncated" // the stream ended before its finish mark
	Unknown         = "unknown"          // nothing is known of it
)

// Kinds of failures of a send: the message did not get as far as a model.
const (
	APIKeyNotFound        = "api_key_not_found"
	OAuthNotConnected     = "oauth_not_connected"
	ProviderDisabled      = "provider_disabled"
	ProviderNotSupported  = "provider_not_supported"
	ModelNotAvailable     = "model_not_available"
	InvalidModelString    = "invalid_model_string"
	IncompatibleWorkspace = "incompatible_workspace"
	PolicyDenied          = "policy_denied"
)

// Whose failure it was decides which list counts.
var (
	turnFinal = []string{Authentication, Quota, ModelNotFound, ContextExceeded, Aborted, RuntimeNotReady, ModelRefusal}
	sendFinal = []string{
		APIKeyNotFound,
		OAuthNotConnected,
		ProviderDisabled,
		Authentication,
		Quota,
		ProviderNotSupported,
		ModelNotAvailable,
		InvalidModelString,
		IncompatibleWorkspace,
		RuntimeNotReady,
		PolicyDenied,
	}
	// providerConcerns are what another key, another account or a payment may have mended.
	providerConcerns = []string{Authentication, Quota, APIKeyNotFound, OAuthNotConnected, ProviderDisabled}
	// others are the kinds of turns that trying again may mend.
	others = []string{
		BadSummary,
		EmptyOutput,
		Interrupted,
		InvalidRequest,
		Network,
		RateLimit,
		ServerError,
		Stalled,
		StreamTruncated,
	}
)

// Retryable says whether a turn that failed so may be tried again by itself. Every kind that is not known to be final is.
func Retryable(kind string) bool { return !slices.Contains(turnFinal, kind) }

// SendRetryable says the same of a message that could not be sent.
func SendRetryable(kind string) bool { return !slices.Contains(sendFinal, kind) }

// ProviderConcern says whether a change at the provider lifts the failure's mark: another key, another account, a payment.
// Lifting starts nothing.
func ProviderConcern(kind string) bool { return slices.Contains(providerConcerns, kind) }

// named says whether somebody who knows has named the kind already.
func named(kind string) bool {
	return slices.Contains(turnFinal, kind) || slices.Contains(sendFinal, kind) || slices.Contains(others, kind)
}
