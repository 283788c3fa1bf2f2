The delay is 2, 4, 8, 16, 32, 60, 60 seconds from the failure on; the attempts are counted from 1, and each failure has one (T1, T6, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- at --
10
-- facts --
3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"2026-03-01T12:00:12Z","error":{"kind":"server_error","text":"x"}}
-- at --
11
-- decide --
look 12
-- at --
12
-- decide --
turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
6 turn.started {"turn":"@asked"}
-- at --
22
-- facts --
7 turn.failed {"turn":"@open","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"2026-03-01T12:00:26Z","error":{"kind":"network","text":"x"}}
-- at --
25
-- decide --
look 26
-- at --
26
-- decide --
turn.requested {"turn":"turn-wdomhejjgugbqmas3pk2","cause":"retry","of_turn":"turn-xvry7jgnky2udt6aoshg","message":"m1","attempt":2,"options":{"model":"big"}}
-- facts --
10 turn.started {"turn":"@asked"}
-- at --
36
-- facts --
11 turn.failed {"turn":"@open","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-wdomhejjgugbqmas3pk2","attempt":3,"delay_ms":8000,"due_at":"2026-03-01T12:00:44Z","error":{"kind":"server_error","text":"x"}}
-- at --
43
-- decide --
look 44
-- at --
44
-- decide --
turn.requested {"turn":"turn-c7bx7s5k3apq7kfmzsdw","cause":"retry","of_turn":"turn-wdomhejjgugbqmas3pk2","message":"m1","attempt":3,"options":{"model":"big"}}
-- facts --
14 turn.started {"turn":"@asked"}
-- at --
54
-- facts --
15 turn.failed {"turn":"@open","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-c7bx7s5k3apq7kfmzsdw","attempt":4,"delay_ms":16000,"due_at":"2026-03-01T12:01:10Z","error":{"kind":"network","text":"x"}}
-- at --
69
-- decide --
look 70
-- at --
70
-- decide --
turn.requested {"turn":"turn-sy73nmrs4xux6gmgxqu6","cause":"retry","of_turn":"turn-c7bx7s5k3apq7kfmzsdw","message":"m1","attempt":4,"options":{"model":"big"}}
-- facts --
18 turn.started {"turn":"@asked"}
-- at --
80
-- facts --
19 turn.failed {"turn":"@open","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-sy73nmrs4xux6gmgxqu6","attempt":5,"delay_ms":32000,"due_at":"2026-03-01T12:01:52Z","error":{"kind":"server_error","text":"x"}}
-- at --
111
-- decide --
look 112
-- at --
112
-- decide --
turn.requested {"turn":"turn-ph6o3wefsae4agpokq2c","cause":"retry","of_turn":"turn-sy73nmrs4xux6gmgxqu6","message":"m1","attempt":5,"options":{"model":"big"}}
-- facts --
22 turn.started {"turn":"@asked"}
-- at --
122
-- facts --
23 turn.failed {"turn":"@open","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-ph6o3wefsae4agpokq2c","attempt":6,"delay_ms":60000,"due_at":"2026-03-01T12:03:02Z","error":{"kind":"network","text":"x"}}
-- at --
181
-- decide --
look 182
-- at --
182
-- decide --
turn.requested {"turn":"turn-zfebw7sjb3oqfyo3mqom","cause":"retry","of_turn":"turn-ph6o3wefsae4agpokq2c","message":"m1","attempt":6,"options":{"model":"big"}}
-- facts --
26 turn.started {"turn":"@asked"}
-- at --
192
-- facts --
27 turn.failed {"turn":"@open","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
retry.scheduled {"turn":"turn-zfebw7sjb3oqfyo3mqom","attempt":7,"delay_ms":60000,"due_at":"2026-03-01T12:04:12Z","error":{"kind":"server_error","text":"x"}}
-- at --
251
-- decide --
look 252
-- at --
252
-- decide --
turn.requested {"turn":"turn-gw735rulcavleyfehonm","cause":"retry","of_turn":"turn-zfebw7sjb3oqfyo3mqom","message":"m1","attempt":7,"options":{"model":"big"}}
-- facts --
30 turn.started {"turn":"@asked"}
-- state --
running turn=turn-gw735rulcavleyfehonm,retry last=turn-zfebw7sjb3oqfyo3mqom,failed retry=,attempt=7,same=1,resumes=0
