A turn of a person's message is stopped for a compaction. While the compaction runs, a question of an earlier process,
outside of any turn, is answered. After the compaction the turn continues, and names the decision (P13, C11).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 session.claimed {"incarnation":"18"}
4 by=harness message.accepted {"message":"m0","content":"fix the login","by":"ada"}
4 by=harness turn.started {"turn":"t1","cause":"message","message":"m0"}
5 usage.reported {"turn":"t1","model":"m","tokens":{"input":950}}
-- decide --
6 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 95 %: it is compacted, then this continues"}
6 compaction.requested {"compaction":"compaction-donma7egrjgcgstubisz","reason":"mid-stream","used":950,"limit":1000,"follow_up":"continue","message":"m0"}
-- facts --
7 turn.stopped {"turn":"t1","actor":"compaction"}
8 compaction.started {"compaction":"$compaction"}
9 by=ledger prompt.answered {"prompt":"p0","answers":[],"by":"ada","owed":true}
10 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
11 turn.requested {"turn":"turn-jgwqwlbs5bjgsae3xfg5","cause":"follow-up","of_turn":"t1","message":"m0","compaction":"compaction-donma7egrjgcgstubisz","prompt":"p0","prompts":["p0"]}
-- state --
queued owned-by=18 last=t1,stopped prompt=p0,answered requested=turn-jgwqwlbs5bjgsae3xfg5,follow-up,of=t1,message=m0 compacted=completed
-- facts --
12 turn.started {"turn":"$requested"}
13 turn.completed {"turn":"$turn"}
-- decide @100s --
(none)
-- state --
idle owned-by=18 last=turn-jgwqwlbs5bjgsae3xfg5,completed compacted=completed
-- state queue last_compaction --
queue: (nothing)
last_compaction: {"id":"compaction-donma7egrjgcgstubisz","outcome":"completed","reason":"mid-stream","used_before":950,"used_after":100,"at":"@10s","failures":0,"seq":10,"used_least":100,"progress":true,"message":"m0","turn":"t1"}
