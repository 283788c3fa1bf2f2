The person takes two answers back: one while the turn of a later message runs, and one after that turn. The message
takes the place of both questions (P14, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep"}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"keep"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @4s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
4 message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":{"questions":[],"answers":[]},"synthetic":true}
-- request @5s --
answer {"prompt":"p2","answers":[],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p2","answers":[],"by":"ada","owed":true}
5 message.accepted {"message":"answer-uavdz6zzdvvxm2g47f6a","content":{"questions":[],"answers":[]},"synthetic":true}
5 turn.requested {"turn":"turn-ilki3wcgqi36ytkyg75h","cause":"answer","message":"answer-uavdz6zzdvvxm2g47f6a","prompt":"p2","prompts":["p2"]}
-- facts --
6 session.claimed {"incarnation":"18"}
6 message.accepted {"message":"m1","content":"x"}
6 turn.started {"turn":"t1","cause":"message","synthetic":false,"message":"m1"}
7 by=compaction message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state --
running owned-by=18 turn=t1,message prompt=p1,superseded prompt=p2,answered queued=answer-uavdz6zzdvvxm2g47f6a
-- facts --
8 turn.completed {"turn":"t1"}
9 by=compaction message.withdrawn {"message":"answer-uavdz6zzdvvxm2g47f6a","by":"ada"}
-- state --
idle owned-by=18 last=t1,completed prompt=p1,superseded prompt=p2,superseded
-- blocker p1 status reason --
status: "superseded"
reason: "m1"
-- blocker p2 status reason --
status: "superseded"
reason: "m1"
