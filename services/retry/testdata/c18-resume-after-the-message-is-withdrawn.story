A person stops the requested turn of a message, and withdraws the message. The resumed turn for an earlier
answer does not bring the message (C18, V10).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m0"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 turn.completed {"turn":"t1"}
6 by=compaction message.accepted {"message":"m1","content":"x","synthetic":false,"by":"bob"}
6 turn.requested {"turn":"t2","cause":"message","message":"m1","prompt":"p1","prompts":["p1"]}
7 by=ledger turn.stop_requested {"turn":"t2","actor":"person","by":"ada"}
8 by=compaction message.withdrawn {"message":"m1","by":"bob"}
-- state last_turn --
last_turn: {"id":"t2","outcome":"stopped","at":"@7s","prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3}],"cause":"message","attempt":1,"synthetic":false,"had_output":false,"actor":"person","seq":7}
-- request --
resume {"by":"ada"}
-- result --
9 turn.requested {"turn":"turn-2gvyqilrrljw6c7qiufz","cause":"answer","of_turn":"t2","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t2,stopped prompt=p1,answered requested=turn-2gvyqilrrljw6c7qiufz,answer,of=t2 stop=t2,person
