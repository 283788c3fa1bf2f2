A turn asks in a call in the background, and a person answers while the turn is open. A turn of the agent takes its
place and completes. The call still waits for the answer in the living process, so no turn is requested for it. When the
Ask gives up, one is (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","synthetic":true}
3 tool.started {"call":"c1","turn":"t1","name":"ask","background":true}
3 prompt.requested {"prompt":"p1","turn":"t1","call":"c1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=ledger prompt.answered {"owed":true,"prompt":"p1","answers":[],"by":"ada"}
5 turn.started {"turn":"t2","cause":"message","synthetic":true}
6 turn.completed {"turn":"t2"}
-- owner --
alive
-- state last_turn --
last_turn: {"id":"t2","outcome":"completed","at":"@6s","cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":6}
-- decide @20s --
(none)
-- facts --
21 prompt.unattended {"prompt":"p1"}
-- decide @30s --
22 turn.requested {"turn":"turn-e3ten2zaheowhtvsqxxs","cause":"answer","of_turn":"t1","prompt":"p1","prompts":["p1"]}
-- state --
queued owned-by=17 last=t2,completed call=c1 prompt=p1,answered requested=turn-e3ten2zaheowhtvsqxxs,answer,of=t1
