A person's retry now keeps a retry that no harness has taken and that is about to be abandoned (T15, T8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1}
-- facts --
6 @5s session.configured {"policy":{"auto_retry":false},"by":"ada"}
-- request --
now {"by":"ada"}
-- result --
7 turn.requested {"turn":"turn-haaegfd5cn7mhvyme4ev","cause":"retry","of_turn":"t1","message":"m1","attempt":1}
-- decide --
(none)
-- state --
retrying owned-by=17 last=t1,failed,server_error requested=turn-haaegfd5cn7mhvyme4ev,retry,of=t1,message=m1 retry=starting,attempt=1,same=0,resumes=0 auto-retry=off
