Messages sent while a turn runs are queued and handed out in order, one after the other (C7).

-- facts --
1 session.opened {"incarnation":"17"}
-- wish --
send {"message":"m1","content":"hello","by":"ada"}
-- comes to --
message.accepted {"message":"m1","content":"hello","synthetic":false,"by":"ada"}
turn.requested {"turn":"turn-whvbmfh2pdd47osuipxj","cause":"message","message":"m1"}
-- wish --
send {"message":"m2","content":"and then","by":"ada"}
-- comes to --
message.accepted {"message":"m2","content":"and then","synthetic":false,"by":"ada"}
-- facts --
4 turn.started {"turn":"$turn","cause":"message"}
-- wish --
send {"message":"m3","content":"at last","by":"ada"}
-- comes to --
message.accepted {"message":"m3","content":"at last","synthetic":false,"by":"ada"}
-- state --
seq=5 running owned-by=17 turn=turn-whvbmfh2pdd47osuipxj,message queued=m2 queued=m3
-- facts --
6 turn.completed {"turn":"$turn"}
-- decide --
turn.requested {"turn":"turn-6co7onw2nxkbr5zyvwa5","cause":"message","message":"m2"}
-- state --
seq=7 queued owned-by=17 last=turn-whvbmfh2pdd47osuipxj,completed queued=m2 queued=m3 pending=message,m2
