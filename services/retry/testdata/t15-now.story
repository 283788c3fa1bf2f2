Retry now does not wait, and the attempt is counted (T15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- request --
now {"by":"ada"}
-- result --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- request --
now {"by":"bob"}
-- result --
nothing to append, see 5
-- request --
cancel {"by":"bob"}
-- result --
409 the retry has begun: turn turn-xvry7jgnky2udt6aoshg is requested; a stop cancels it
  {"status":"starting","reason":"turn turn-xvry7jgnky2udt6aoshg","by":"ada","at":"@3s","seq":5}
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-xvry7jgnky2udt6aoshg,retry,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=0
-- facts --
6 turn.started {"turn":"$requested"}
-- request --
now {"by":"ada"}
-- result --
409 turn turn-xvry7jgnky2udt6aoshg has not ended
  {"status":"running","reason":"turn turn-xvry7jgnky2udt6aoshg","at":"@6s","seq":6}
-- request --
cancel {"by":"ada"}
-- result --
409 no retry is planned
  {"status":"running","reason":"turn turn-xvry7jgnky2udt6aoshg","at":"@6s","seq":6}
-- facts --
7 turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
8 retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"@11s","error":{"kind":"server_error","text":"x"}}
