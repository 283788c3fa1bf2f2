A person stops a session in which a message waits, and resumes it twice: the second request finds the first one. `now`
asks for a failed turn, and another turn is requested, so it is refused (R15, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 by=compaction message.accepted {"message":"m1","content":"next"}
4 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ben"}
5 turn.stopped {"turn":"t1","actor":"person"}
-- request @9s --
resume {"by":"ben"}
resume {"by":"ben"}
now {"by":"ben"}
-- result --
6 turn.requested {"turn":"turn-5yvb52jl6t5dsijg4x5o","cause":"message","message":"m1"}
nothing to append, see 6
409 turn turn-5yvb52jl6t5dsijg4x5o is already requested
  {"status":"queued","reason":"turn turn-5yvb52jl6t5dsijg4x5o","by":"ben","at":"@9s","seq":6}
-- facts --
7 turn.started {"turn":"$requested"}
-- request --
resume {"by":"ben"}
-- result --
409 turn turn-5yvb52jl6t5dsijg4x5o has not ended
  {"status":"running","reason":"turn turn-5yvb52jl6t5dsijg4x5o","at":"@9s","seq":7}
