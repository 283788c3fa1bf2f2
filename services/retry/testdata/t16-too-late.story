Cancel is too late for a retry that has fired, and for one that was abandoned for another reason: the refusal says which
(T16).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- request --
cancel {"by":"ada"}
-- result --
409 the retry has begun: turn turn-xvry7jgnky2udt6aoshg is requested; a stop cancels it
  {"status":"starting","reason":"turn turn-xvry7jgnky2udt6aoshg","at":"@5s","seq":5}
-- facts --
6 @5s by=ledger turn.stop_requested {"turn":"$requested","actor":"person","by":"ada"}
-- request --
cancel {"by":"ada"}
-- result --
409 the retry is already abandoned: stopped
  {"status":"abandoned","reason":"stopped","at":"@5s","seq":6}
-- state --
idle owned-by=17 last=t1,failed,server_error stop=turn-xvry7jgnky2udt6aoshg,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
