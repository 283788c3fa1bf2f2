Messages sent while a turn runs are queued and handed out in order, one after the other (C7).

-- facts --
1 session.opened {"incarnation":"17"}
-- request --
send {"message":"m1","content":"hello","by":"ada"}
-- result --
2 message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
2 turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- request --
send {"message":"m2","content":"and then","by":"ada"}
-- result --
3 message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- facts --
4 turn.started {"turn":"$requested","cause":"message"}
-- request --
send {"message":"m3","content":"at last","by":"ada"}
-- result --
5 message.accepted {"message":"m3","content":"at last","synthetic":false,"by":"ada"}
-- state --
running owned-by=17 turn=turn-whvbmfh2pdd47osuipxj,message queued=m2 queued=m3
-- facts --
6 turn.completed {"turn":"$turn"}
-- decide --
7 turn.requested {"turn":"turn-6co7onw2nxkbr5zyvwa5","cause":"message","message":"m2"}
-- state --
queued owned-by=17 last=turn-whvbmfh2pdd47osuipxj,completed queued=m2 queued=m3 requested=turn-6co7onw2nxkbr5zyvwa5,message,message=m2
