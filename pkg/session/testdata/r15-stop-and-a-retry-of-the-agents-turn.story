A person stops the session. The agent begins a turn of its own after that, which fails, and another one in place of its
retry. The retry service requested that retry, and no person, so the stop holds what is older (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
-- request --
stop {"by":"ada"}
-- result --
3 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- facts --
4 turn.stopped {"turn":"t1","actor":"person"}
5 turn.started {"turn":"own","cause":"message","synthetic":true}
6 turn.failed {"turn":"own","error":{"kind":"rate_limit","text":"x"}}
7 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"own","attempt":1}
8 turn.started {"turn":"own2","cause":"message","synthetic":true}
-- state stopped_seq --
stopped_seq: 3
