The compaction of a running turn fails before the turn has stopped, and a person requests one at once: the turn
continues after that one (C16, C5, C6).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t0","cause":"message"}
3 turn.completed {"turn":"t0"}
4 turn.started {"turn":"t1","cause":"message"}
5 usage.reported {"turn":"t1","model":"m","tokens":{"input":800}}
-- decide --
6 turn.stop_requested {"turn":"t1","actor":"compaction","reason":"the context is full to 80 %: it is compacted, then this continues"}
6 compaction.requested {"compaction":"compaction-donma7egrjgcgstubisz","reason":"mid-stream","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
7 compaction.started {"compaction":"$compaction"}
8 compaction.failed {"compaction":"$compaction","error":{"kind":"server_error","text":"x"}}
-- decide --
(none)
-- request --
compact {"by":"ada"}
-- result --
9 compaction.requested {"compaction":"compaction-brtwpn5v2mbxs7gx2b7h","reason":"manual","used":800,"limit":1000,"follow_up":"continue"}
-- facts --
10 turn.stopped {"turn":"t1","actor":"compaction"}
11 compaction.completed {"compaction":"$compaction","used_after":100}
-- decide --
12 turn.requested {"turn":"turn-4zsxnjyfa6okmpo4mcc6","cause":"follow-up","of_turn":"t1","compaction":"compaction-brtwpn5v2mbxs7gx2b7h"}
-- state --
queued owned-by=17 last=t1,stopped requested=turn-4zsxnjyfa6okmpo4mcc6,follow-up,of=t1 compacted=completed
