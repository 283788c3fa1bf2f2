package failure

// byCode maps the codes of providers, in lower case, to kinds. It has only codes with one meaning. Codes of several
// causes (invalid_request_error, resource_exhausted, validationexception) are classified by text and status.
var byCode = map[string]string{
	// OpenAI, Azure and compatible APIs
	"context_length_exceeded":              ContextExceeded,
	"prompt_too_long":                      ContextExceeded,
	"model_max_prompt_tokens_exceeded":     ContextExceeded,
	"insufficient_quota":                   Quota,
	"billing_hard_limit_reached":           Quota,
	"billing_not_active":                   Quota,
	"invalid_api_key":                      Authentication,
	"account_deactivated":                  Authentication,
	"unsupported_country_region_territory": Authentication,
	"model_not_found":                      ModelNotFound,
	"deploymentnotfound":                   ModelNotFound,
	"rate_limit_exceeded":                  RateLimit,
	"content_filter":                       ModelRefusal,
	"content_policy_violation":             ModelRefusal,
	"responsibleaipolicyviolation":         ModelRefusal,
	"server_error":                         ServerError,
	"internal_server_error":                ServerError,
	// Anthropic
	"authentication_error": Authentication,
	"permission_error":     Authentication,
	"billing_error":        Quota,
	"request_too_large":    ContextExceeded,
	"rate_limit_error":     RateLimit,
	"overloaded_error":     ServerError,
	"api_error":            ServerError,
	"timeout_error":        Network,
	// Google
	"unauthenticated":   Authentication,
	"permission_denied": Authentication,
	"unavailable":       ServerError,
	"internal":          ServerError,
	"deadline_exceeded": Network,
	// Bedrock
	"accessdeniedexception":        Authentication,
	"unrecognizedclientexception":  Authentication,
	"expiredtokenexception":        Authentication,
	"throttlingexception":          RateLimit,
	"resourcenotfoundexception":    ModelNotFound,
	"serviceunavailableexception":  ServerError,
	"internalserverexception":      ServerError,
	"modelnotreadyexception":       ServerError,
	"modelstreamerrorexception":    ServerError,
	"modeltimeoutexception":        Network,
	"arrearage":                    Quota, // Alibaba
	"exceeded_current_quota_error": Quota, // Moonshot
	"engine_overloaded_error":      ServerError,
	// codes of the network and of the runtime
	"econnrefused":            Network,
	"econnreset":              Network,
	"enotfound":               Network,
	"epipe":                   Network,
	"etimedout":               Network,
	"eai_again":               Network,
	"und_err_socket":          Network,
	"und_err_connect_timeout": Network,
	"und_err_headers_timeout": Network,
	"und_err_body_timeout":    Network,
	"aborterror":              Aborted,
}

// Words that identify the kind in a text, in lower case. Each is from a provider's message; see the tests.
var (
	// contextWords: the prompt does not fit. Too much requested output is another kind, and so are too many tokens per
	// minute.
	contextWords = []string{
		"prompt is too long",
		"prompt_too_long",
		"prompt too long",
		"context_length_exceeded",
		"context length exceeded",
		"maximum context length",
		"model's context length",
		"context window",
		"exceeds the context",
		"exceed context limit",
		"available context size",
		"than the context length",
		"token limit",
		"input is too long",
		"too many input tokens",
		"exceeds the maximum number of tokens allowed",
		"maximum prompt length",
		"prompt token count",
		"reduce the length of the messages",
		"reduce the length of the input",
		"`inputs` tokens + `max_new_tokens`",
		"exceeds the maximum size",
		"request entity too large",
		"request_too_large",
	}
	// billingWords classify a 429 as quota.
	billingWords = []string{
		"insufficient quota",
		"insufficient_quota",
		"billing",
		"payment required",
		"insufficient balance",
		"add credits",
		"credit balance",
		"hard limit",
	}
	// moneyWords are the unambiguous ones of these: they count with any status.
	moneyWords = []string{
		"insufficient quota",
		"insufficient_quota",
		"payment required",
		"insufficient balance",
		"insufficient credits",
		"more credits",
		"add credits",
		"credit balance",
		"billing hard limit",
		"check your plan and billing",
	}
	// paceWords keep a 429 with billing words a rate_limit: some providers use the same sentence for a quota per
	// minute.
	paceWords = []string{"retrydelay", "retry in ", "try again in ", "perminute", "per minute", "per min", "/ min"}
	// modelWords: the model does not exist, or the key has no access to it.
	modelWords = []string{
		"model_not_found",
		"modelnotfound",
		"model not found",
		"no endpoints found",
		"deployment for this resource does not exist",
		"model identifier is invalid",
	}
	authWords = []string{
		"invalid api key",
		"api key not valid",
		"incorrect api key",
		"invalid x-api-key",
		"no auth credentials",
		"security token included in the request",
	}
	refusalWords = []string{"content management policy", "content_filter", "flagged", "content policy", "safety system"}
	rateWords    = []string{"rate limit", "rate-limit", "too many requests", "too many tokens", "throttl"}
	serverWords  = []string{
		"overloaded",
		"internal server error",
		"service unavailable",
		"bad gateway",
		"temporarily unavailable",
	}
	networkWords = []string{
		"connection refused",
		"connection reset",
		"no such host",
		"broken pipe",
		"fetch failed",
		"socket hang up",
		"network error",
		"i/o timeout",
		"timeout",
		"timed out",
		"deadline exceeded",
		"unexpected eof",
		"tls handshake",
	}
)

// byWords is searched when neither code nor status decided, the most specific kind first.
var byWords = []struct {
	kind  string
	words []string
}{
	{
		Quota,
		moneyWords,
	},
	{Authentication, authWords},
	{ModelRefusal, refusalWords},
	{ModelNotFound, modelWords},
	{RateLimit, rateWords},
	{ServerError, serverWords},
	{Network, networkWords},
}
