A retry is planned for t1. The agent runs a turn of its own, which it stops, and a person stops the retry. The process
has not read the stop, and begins another turn: the stop, which names t1, moves to it (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x"}}
4 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":9000,"due_at":"@12s","error":{"kind":"rate_limit","text":"x"}}
5 turn.started {"turn":"own","cause":"message","synthetic":true}
6 turn.stopped {"turn":"own"}
-- request --
stop {"by":"ada"}
-- result --
7 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- state --
idle owned-by=17 last=own,stopped stop=t1,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
-- facts --
8 turn.started {"turn":"own2","cause":"message","synthetic":true}
-- state --
running owned-by=17 turn=own2,message last=own,stopped stop=own2,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
