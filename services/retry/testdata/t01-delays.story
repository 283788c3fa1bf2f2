The delay is 2, 4, 8, 16, 32, 60, 60 seconds after the failure; the attempts are counted from 1, and each failure has
one (T1, T6, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
-- facts --
3 @10s turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@12s","error":{"kind":"server_error","text":"x"}}
-- decide @11s --
look @12s
-- decide @12s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"big"}}
-- facts --
6 turn.started {"turn":"$requested"}
-- facts --
7 @22s turn.failed {"turn":"$turn","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
8 retry.scheduled {"turn":"turn-xvry7jgnky2udt6aoshg","attempt":2,"delay_ms":4000,"due_at":"@26s","error":{"kind":"network","text":"x"}}
-- decide @25s --
look @26s
-- decide @26s --
9 turn.requested {"turn":"turn-wdomhejjgugbqmas3pk2","cause":"retry","of_turn":"turn-xvry7jgnky2udt6aoshg","message":"m1","attempt":2,"options":{"model":"big"}}
-- facts --
10 turn.started {"turn":"$requested"}
-- facts --
11 @36s turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
12 retry.scheduled {"turn":"turn-wdomhejjgugbqmas3pk2","attempt":3,"delay_ms":8000,"due_at":"@44s","error":{"kind":"server_error","text":"x"}}
-- decide @43s --
look @44s
-- decide @44s --
13 turn.requested {"turn":"turn-c7bx7s5k3apq7kfmzsdw","cause":"retry","of_turn":"turn-wdomhejjgugbqmas3pk2","message":"m1","attempt":3,"options":{"model":"big"}}
-- facts --
14 turn.started {"turn":"$requested"}
-- facts --
15 @54s turn.failed {"turn":"$turn","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
16 retry.scheduled {"turn":"turn-c7bx7s5k3apq7kfmzsdw","attempt":4,"delay_ms":16000,"due_at":"@70s","error":{"kind":"network","text":"x"}}
-- decide @69s --
look @70s
-- decide @70s --
17 turn.requested {"turn":"turn-sy73nmrs4xux6gmgxqu6","cause":"retry","of_turn":"turn-c7bx7s5k3apq7kfmzsdw","message":"m1","attempt":4,"options":{"model":"big"}}
-- facts --
18 turn.started {"turn":"$requested"}
-- facts --
19 @80s turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
20 retry.scheduled {"turn":"turn-sy73nmrs4xux6gmgxqu6","attempt":5,"delay_ms":32000,"due_at":"@112s","error":{"kind":"server_error","text":"x"}}
-- decide @111s --
look @112s
-- decide @112s --
21 turn.requested {"turn":"turn-ph6o3wefsae4agpokq2c","cause":"retry","of_turn":"turn-sy73nmrs4xux6gmgxqu6","message":"m1","attempt":5,"options":{"model":"big"}}
-- facts --
22 turn.started {"turn":"$requested"}
-- facts --
23 @122s turn.failed {"turn":"$turn","error":{"kind":"network","text":"x"},"had_output":false}
-- decide --
24 retry.scheduled {"turn":"turn-ph6o3wefsae4agpokq2c","attempt":6,"delay_ms":60000,"due_at":"@182s","error":{"kind":"network","text":"x"}}
-- decide @181s --
look @182s
-- decide @182s --
25 turn.requested {"turn":"turn-zfebw7sjb3oqfyo3mqom","cause":"retry","of_turn":"turn-ph6o3wefsae4agpokq2c","message":"m1","attempt":6,"options":{"model":"big"}}
-- facts --
26 turn.started {"turn":"$requested"}
-- facts --
27 @192s turn.failed {"turn":"$turn","error":{"kind":"server_error","text":"x"},"had_output":false}
-- decide --
28 retry.scheduled {"turn":"turn-zfebw7sjb3oqfyo3mqom","attempt":7,"delay_ms":60000,"due_at":"@252s","error":{"kind":"server_error","text":"x"}}
-- decide @251s --
look @252s
-- decide @252s --
29 turn.requested {"turn":"turn-gw735rulcavleyfehonm","cause":"retry","of_turn":"turn-zfebw7sjb3oqfyo3mqom","message":"m1","attempt":7,"options":{"model":"big"}}
-- facts --
30 turn.started {"turn":"$requested"}
-- state --
running owned-by=17 turn=turn-gw735rulcavleyfehonm,retry last=turn-zfebw7sjb3oqfyo3mqom,failed,server_error retry=,attempt=7,same=1,resumes=0
