With resume hold, the answer to a question outside of the interrupted turn continues that turn with its message and
options, so the turn is not lost (P13, R14).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
2 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"When?"}]}
3 turn.started {"turn":"t1","cause":"message","message":"m1","options":{"model":"big"}}
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 turn.interrupted {"turn":"t1","reason":"owner-lost"}
5 session.configured {"policy":{"resume":"hold"},"by":"ada"}
-- state --
interrupted last=t1,interrupted,owner-lost prompt=p1,awaiting prompt=p2,awaiting
-- request --
answer {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"blue"}],"by":"ada","owed":true}
6 turn.requested {"turn":"turn-z3ao44pwarq65qsh3etl","cause":"answer","of_turn":"t1","message":"m1","options":{"model":"big"},"prompt":"p1","prompts":["p1"]}
-- request --
answer {"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"ada"}
-- result --
7 prompt.answered {"prompt":"p2","answers":[{"question":"q","selected":[],"text":"now"}],"by":"ada","owed":true}
7 message.accepted {"message":"answer-uavdz6zzdvvxm2g47f6a","content":{"questions":[{"id":"q","question":"When?","options":[],"multi":false,"custom":false}],"answers":[{"question":"q","selected":[],"text":"now"}]},"synthetic":true}
7 turn.requested {"turn":"turn-jaidas4co3pgl6vwzlbw","cause":"answer","of_turn":"t1","message":"answer-uavdz6zzdvvxm2g47f6a","options":{"model":"big"},"prompt":"p2","prompts":["p1","p2"]}
-- state --
queued last=t1,interrupted,owner-lost prompt=p1,answered prompt=p2,answered queued=answer-uavdz6zzdvvxm2g47f6a requested=turn-jaidas4co3pgl6vwzlbw,answer,of=t1,message=answer-uavdz6zzdvvxm2g47f6a
