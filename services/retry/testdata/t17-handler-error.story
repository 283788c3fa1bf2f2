An error of the agent's own code has one more attempt (T17).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"handler_error","text":"nil map"},"had_output":false}
-- repeat 1 --
handler_error
-- decide --
8 retry.abandoned {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":1,"reason":"no_progress"}
-- state --
idle owned-by=17 last=turn-xvry7jgnky2udt6aoshg,failed,handler_error retry=abandoned,attempt=1,same=2,resumes=0,no_progress
