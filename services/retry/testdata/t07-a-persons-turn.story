A person's turn does so, too, and has new attempts (T7, R15, V9).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- facts --
5 turn.started {"turn":"t2","cause":"message","message":"m2"}
-- decide @60s --
watch @605s
-- state --
running owned-by=17 turn=t2,message last=t1,failed,server_error
-- facts --
6 @6s turn.failed {"turn":"t2","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide @6s --
7 retry.scheduled {"turn":"t2","attempt":1,"delay_ms":2000,"due_at":"@8s","error":{"kind":"server_error","text":"x"}}
