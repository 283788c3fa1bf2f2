The log is from before decisions called for turns: its answers do not say that they are owed. After the upgrade recovery
requests no turn for them, so a first start is no burst. An answer of today calls for a turn, which names the old ones, too
(P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"message","blocking":false,"questions":[{"id":"q","question":"When?"}]}
5 by=ledger prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"user-1"}
6 by=ledger prompt.rejected {"prompt":"p2","by":"user-1"}
7 turn.completed {"turn":"t1"}
-- owner --
alive
-- decide --
(none)
-- facts --
8 prompt.requested {"prompt":"p3","kind":"question","delivery":"callback","on_owner_loss":"keep","questions":[{"id":"q","question":"Who?"}]}
9 prompt.unattended {"prompt":"p3"}
10 by=ledger prompt.answered {"owed":true,"prompt":"p3","answers":[{"question":"q","selected":[],"text":"ada"}],"by":"user-1"}
-- decide --
11 turn.requested {"turn":"turn-2g77ew3i26prpilkqjjz","cause":"answer","prompt":"p3","prompts":["p1","p2","p3"]}
-- state --
queued owned-by=17 last=t1,completed prompt=p1,answered prompt=p2,rejected prompt=p3,answered requested=turn-2g77ew3i26prpilkqjjz,answer
