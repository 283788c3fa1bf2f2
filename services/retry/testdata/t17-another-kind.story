A failure of another kind starts the count at 1 (T17).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"empty_output","text":"x"},"had_output":false}
-- repeat 19 --
stream_truncated
-- decide --
80 retry.scheduled {"turn":"turn-ga6nam3a7jwgwgsbsoul","attempt":20,"delay_ms":60000,"due_at":"@965s","error":{"kind":"stream_truncated","text":"x"}}
-- state --
retrying owned-by=17 last=turn-ga6nam3a7jwgwgsbsoul,failed,stream_truncated retry=scheduled,attempt=20,same=19,resumes=0,due=@965s
