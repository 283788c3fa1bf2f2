A retry is requested, and a person stops it. The process has not read the stop, and begins a turn of its own. The last
turn is the one that failed, and the stop moves all the same (R15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"x"}}
4 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","attempt":1}
-- request --
stop {"by":"ada"}
-- result --
5 turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
-- state --
idle owned-by=17 last=t1,failed,rate_limit stop=t2,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
-- facts --
6 turn.started {"turn":"own","cause":"message","synthetic":true}
-- state --
running owned-by=17 turn=own,message last=t1,failed,rate_limit stop=own,person retry=abandoned,attempt=1,same=1,resumes=0,stopped
-- facts --
7 turn.stopped {"turn":"own","actor":"person"}
-- state --
idle owned-by=17 last=own,stopped retry=abandoned,attempt=1,same=1,resumes=0,stopped
-- state stopped_seq held_seq --
stopped_seq: 5
held_seq: 5
