A person stops while the conversation is compacted for a message: resume hands out that message when the compaction has
ended (C7, R15).

-- facts --
1 session.opened {"incarnation":"17","context_limit":1000}
2 turn.started {"turn":"t1","cause":"message"}
3 turn.completed {"turn":"t1"}
4 message.accepted {"message":"m1","content":"Next","synthetic":false}
5 compaction.requested {"compaction":"k1","reason":"on-send","used":800,"limit":1000,"follow_up":"message","message":"m1"}
6 by=ledger turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
7 turn.stopped {"turn":"t1","actor":"person"}
-- request --
resume {"by":"ada"}
-- result --
409 the conversation is being compacted: the session continues afterwards
  {"status":"compacting","reason":"last turn completed","at":"@3s","seq":3}
-- facts --
8 compaction.completed {"compaction":"k1"}
-- request --
resume {"by":"ada"}
-- result --
9 turn.requested {"turn":"turn-qiiykadx6wpttjwsiai7","cause":"message","message":"m1"}
