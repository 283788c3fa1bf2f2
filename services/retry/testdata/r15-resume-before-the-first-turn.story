A person stopped a session before its first turn began, and resumes it: the message starts (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=harness message.accepted {"message":"m1","content":"hello"}
3 by=ledger turn.requested {"turn":"t1","cause":"message","message":"m1"}
3 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
-- decide @7s --
(none)
-- request @9s --
resume {"by":"ben"}
-- result --
4 turn.requested {"turn":"turn-jsjbq3pi6unl3ghejz32","cause":"message","message":"m1"}
-- state --
queued owned-by=17 last=t1,stopped queued=m1 requested=turn-jsjbq3pi6unl3ghejz32,message,message=m1 stop=t1,person
