A child that was stopped for a compaction is not settled while the compaction is retried, or while its follow-up is
pending: its turn will continue. The parent's call waits for that (P16, C8).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"task1","turn":"t1","name":"task"}
-- facts child --
5 session.opened {"incarnation":"17","parent":"s","parent_call":"task1","root":"s"}
6 turn.started {"turn":"k1","cause":"message","synthetic":true}
8 prompt.requested {"prompt":"p1","turn":"k1","kind":"question","delivery":"tool-result","questions":[{"id":"q","question":"Which?"}]}
-- owner --
dead
-- owner child --
dead
-- decide @20s --
child 9 session.orphaned {"reason":"owner-lost","incarnation":"17"}
s 10 session.orphaned {"reason":"owner-lost","incarnation":"17","waits_for":[{"call":"task1","child":"child"}]}
-- facts child --
30 session.claimed {"incarnation":"18"}
31 turn.started {"turn":"k2","cause":"answer","of_turn":"k1","synthetic":true}
32 by=compaction turn.stop_requested {"turn":"k2","actor":"compaction"}
32 by=compaction compaction.requested {"compaction":"z1","reason":"mid-stream","used":80,"limit":100,"follow_up":"continue"}
33 turn.stopped {"turn":"k2","actor":"compaction"}
34 compaction.started {"compaction":"z1"}
35 compaction.failed {"compaction":"z1","error":{"kind":"server_error","text":"no"}}
-- owner child --
alive
-- decide @60s --
(none)
-- facts child --
61 by=compaction compaction.requested {"compaction":"z2","reason":"mid-stream","used":80,"limit":100,"follow_up":"continue"}
62 compaction.started {"compaction":"z2"}
63 compaction.completed {"compaction":"z2"}
-- decide @90s --
(none)
-- facts child --
91 by=compaction turn.requested {"turn":"k3","cause":"follow-up","of_turn":"k2","compaction":"z2"}
92 turn.started {"turn":"k3","cause":"follow-up","of_turn":"k2","synthetic":true}
93 turn.completed {"turn":"k3"}
-- decide @94s --
s 94 tool.completed {"call":"task1","output":{"child":"child","outcome":"completed","turn":"k3"},"synthetic":true}
s 94 turn.requested {"turn":"turn-hqqd5fanpu4zjsx67nxx","cause":"resume","of_turn":"t1"}
