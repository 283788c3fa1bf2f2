A question of a call in the background expires after its turn has completed, and so does a question outside of any turn.
The process dies. Recovery ends the call, and requests no turn: no person has acted (P19).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
2 tool.started {"call":"c1","turn":"t1","name":"watch","background":true}
2 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"tool-result","on_owner_loss":"keep","deadline":"@50s"}
2 turn.completed {"turn":"t1"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"keep","deadline":"@50s"}
-- owner --
dead
-- decide @60s --
4 session.orphaned {"reason":"owner-lost","incarnation":"17"}
4 prompt.expired {"prompt":"p1","reason":"deadline"}
4 prompt.expired {"prompt":"p2","reason":"deadline"}
4 tool.failed {"call":"c1","error":{"kind":"expired","text":"deadline"},"synthetic":true}
-- state --
idle last=t1,completed prompt=p2,expired
