package request

import "time"

// Checked is a request that checks its own fields.
type Checked interface {
	// Validate checks ids and names. The error wraps [events.ErrMalformed] and names the field.
	Validate() error
}

// Verb is one endpoint of a service: the request Q, its reply R, and who may call it.
type Verb[Q Checked, R any] struct {
	Service string
	Name    string // the last token of the subject
	Doc     string // one sentence
	// TimeMax is the longest time that the service works on a request. Zero: the default of all endpoints.
	TimeMax time.Duration
	// Operator: for operators only, because it is expensive.
	Operator bool
	// Harness: a harness may call it as well.
	Harness bool
}

// Entry is a [Verb] without its types. Request and Reply are zero values.
type Entry struct {
	Service, Verb, Doc string
	Operator, Harness  bool
	Request, Reply     any
}

func (v Verb[Q, R]) entry() Entry {
	var q Q
	var r R
	return Entry{v.Service, v.Name, v.Doc, v.Operator, v.Harness, q, r}
}

// The services, by the names of their subjects.
const (
	ledger     = "ledger"
	retry      = "retry"
	compaction = "compaction"
	reconciler = "reconciler"
)

// Times that the requests of operators take at most.
const (
	rebuildMax = 10 * time.Minute // it reads the whole log
	sweepMax   = 5 * time.Minute
)

// The verbs, by service.
var (
	LedgerGet  = Verb[Get, Document]{Service: ledger, Name: "get", Doc: "One session's document."}
	LedgerList = Verb[List, Documents]{Service: ledger, Name: "list", Doc: "Documents, page by page."}

	LedgerAnswer = Verb[Answer, Changed]{Service: ledger, Name: "answer", Doc: "Answer a prompt."}
	LedgerReject = Verb[Reject, Changed]{Service: ledger, Name: "reject",
		Doc: "Refuse a prompt; with a text the model reads why."}
	LedgerDismiss = Verb[Dismiss, Changed]{Service: ledger, Name: "dismiss",
		Doc: "Put a prompt away without an answer."}
	LedgerStop      = Verb[Stop, Changed]{Service: ledger, Name: "stop", Doc: "Stop the running turn."}
	LedgerClose     = Verb[Close, Changed]{Service: ledger, Name: "close", Doc: "End the session for good."}
	LedgerConfigure = Verb[Configure, Changed]{Service: ledger, Name: "configure",
		Doc: "Change the session's policy: an absent field is unchanged, null goes back to the default."}

	LedgerRebuild = Verb[Rebuild, Rebuilt]{Service: ledger, Name: "rebuild", Operator: true, TimeMax: rebuildMax,
		Doc: "Make documents and views from the log again. For operators."}

	RetryNow    = Verb[Retry, Changed]{Service: retry, Name: "now", Doc: "Try the failed turn again at once."}
	RetryCancel = Verb[Retry, Changed]{Service: retry, Name: "cancel", Doc: "Do not try the failed turn again."}
	RetryResume = Verb[Retry, Changed]{Service: retry, Name: "resume", Doc: "Go on with an interrupted session."}

	CompactionSend = Verb[Send, Changed]{Service: compaction, Name: "send", Harness: true,
		Doc: "Send a message."}
	CompactionWithdraw = Verb[Withdraw, Changed]{Service: compaction, Name: "withdraw",
		Doc: "Take a queued message back."}
	CompactionCompact = Verb[Compact, Changed]{Service: compaction, Name: "compact",
		Doc: "Compact the conversation now."}
	CompactionCheck = Verb[Check, Verdict]{Service: compaction, Name: "check",
		Doc: "Would a compaction be requested, and why. Changes nothing."}

	ReconcilerSweep = Verb[Sweep, Swept]{Service: reconciler, Name: "sweep", Operator: true, TimeMax: sweepMax,
		Doc: "One recovery pass."}
	ReconcilerReport = Verb[Scope, Report]{Service: reconciler, Name: "report",
		Doc: "Counts by outcome and reason, the last pass, suspects."}
)

// Table returns all verbs, in the order of the contract.
func Table() []Entry {
	return []Entry{
		LedgerGet.entry(), LedgerList.entry(), LedgerAnswer.entry(), LedgerReject.entry(), LedgerDismiss.entry(),
		LedgerStop.entry(), LedgerClose.entry(), LedgerConfigure.entry(), LedgerRebuild.entry(),
		RetryNow.entry(), RetryCancel.entry(), RetryResume.entry(),
		CompactionSend.entry(), CompactionWithdraw.entry(), CompactionCompact.entry(), CompactionCheck.entry(),
		ReconcilerSweep.entry(), ReconcilerReport.entry(),
	}
}
