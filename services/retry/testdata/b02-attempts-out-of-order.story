Attempt numbers of harnesses do not count: retry counts the attempts (T9, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","attempt":99}
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"server_error","text":"x"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","attempt":1}
-- facts --
6 @5s turn.started {"turn":"$requested","attempt":-3}
7 @5s turn.failed {"turn":"$turn","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
8 retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"@9s","error":{"kind":"network","text":"x"}}
-- state --
retrying owned-by=17 last=turn-xvry7jgnky2udt6aoshg,failed,network retry=scheduled,attempt=2,same=1,resumes=0,due=@9s
