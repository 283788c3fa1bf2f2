An answer that became a message is taken back before a turn has it. The question waits again, and the person answers it
once more. The new answer becomes another message (P13, C18).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"message","on_owner_loss":"keep"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @4s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
4 message.accepted {"message":"answer-i5l5hakm5zrg4ksfj6ps","content":{"questions":[],"answers":[]},"synthetic":true}
4 turn.requested {"turn":"turn-jhbjn6u7z2wmwx4cpc7z","cause":"answer","message":"answer-i5l5hakm5zrg4ksfj6ps","prompt":"p1","prompts":["p1"]}
-- facts --
5 by=compaction message.withdrawn {"message":"answer-i5l5hakm5zrg4ksfj6ps","by":"ada"}
-- state --
waiting prompt=p1,awaiting
-- blocker p1 status answers seq closed_at --
status: "awaiting"
answers: (nothing)
seq: 5
closed_at: (nothing)
-- request @6s --
answer {"prompt":"p1","answers":[],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[],"by":"ada","owed":true}
6 message.accepted {"message":"answer-zjcxmmo24jtavz65jfwv","content":{"questions":[],"answers":[]},"synthetic":true}
6 turn.requested {"turn":"turn-jt2hemddtogynv6ejkjr","cause":"answer","message":"answer-zjcxmmo24jtavz65jfwv","prompt":"p1","prompts":["p1"]}
-- state --
queued prompt=p1,answered queued=answer-zjcxmmo24jtavz65jfwv requested=turn-jt2hemddtogynv6ejkjr,answer,message=answer-zjcxmmo24jtavz65jfwv
-- blocker p1 status answers --
status: "answered"
answers: (nothing)
