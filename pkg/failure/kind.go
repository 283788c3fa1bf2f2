package failure

import "slices"

// Kinds of failures of a turn or a compaction. Other kinds are valid everywhere, and retryable.
const (
	Aborted         = "aborted"          // ended on purpose
	Authentication  = "authentication"   // the provider rejects the key, or its permissions
	BadSummary      = "bad_summary"      // a compaction's summary is empty, or a bare JSON object
	ContextExceeded = "context_exceeded" // more than the model's context; a compaction is needed
	EmptyOutput     = "empty_output"     // the model ended without text and without a call
	Interrupted     = "interrupted"      // its process died
	HandlerError    = "handler_error"    // an error of the agent's own code; it gets one more attempt
	InvalidRequest  = "invalid_request"  // the provider rejects the request, and no other kind fits
	ModelNotFound   = "model_not_found"  // the provider has no such model
	ModelRefusal    = "model_refusal"    // the provider's filter, or the model, refuses to answer
	Network         = "network"          // no response: refused, reset, timed out
	OutcomeUnknown  = "outcome_unknown"  // a step was cut off, and is not run again: a person has to look
	Quota           = "quota"            // the account's paid quota is used up; time alone does not help
	RateLimit       = "rate_limit"       // too many requests or tokens; time helps
	RuntimeNotReady = "runtime_not_ready"
	ServerError     = "server_error"     // the provider's fault, or its overload
	Stalled         = "stalled"          // no output for too long
	StreamTruncated = "stream_truncated" // the stream ended before its end marker
	Unknown         = "unknown"          // not classified
)

// Kinds of failures of a send: the message did not reach a model.
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

// A turn and a message have different lists of final kinds.
var (
	turnFinal = []string{Authentication, Quota, ModelNotFound, ContextExceeded, Aborted, RuntimeNotReady, ModelRefusal,
		OutcomeUnknown}
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
	// providerConcerns are the kinds that another key, another account or a payment may cure.
	providerConcerns = []string{Authentication, Quota, APIKeyNotFound, OAuthNotConnected, ProviderDisabled}
	// others are the kinds of failed turns that a retry may cure.
	others = []string{
		BadSummary,
		EmptyOutput,
		HandlerError,
		Interrupted,
		InvalidRequest,
		Network,
		RateLimit,
		ServerError,
		Stalled,
		StreamTruncated,
	}
)

// Retryable reports whether a turn that failed with this kind may be retried automatically. Only the kinds known as
// final are not retryable.
func Retryable(kind string) bool { return !slices.Contains(turnFinal, kind) }

// SendRetryable reports whether a message that could not be sent with this kind may be sent again automatically.
func SendRetryable(kind string) bool { return !slices.Contains(sendFinal, kind) }

// ProviderConcern reports whether a change at the provider (another key, another account, a payment) lifts the mark of
// this failure. It starts no retry.
func ProviderConcern(kind string) bool { return slices.Contains(providerConcerns, kind) }

// named reports whether kind is a kind of this package.
func named(kind string) bool {
	return slices.Contains(turnFinal, kind) || slices.Contains(sendFinal, kind) || slices.Contains(others, kind)
}
