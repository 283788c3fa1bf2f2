A process adopts a turn whose question was answered meanwhile: the answer is that process's to take in, and a continuation
that was requested while the turn had no owner is dropped, for the turn itself continues (R7, P12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"tool-result"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5 session.claimed {"incarnation":"18"}
-- work prompts --
(none)
-- facts --
6 turn.started {"turn":"t1","cause":"message"}
-- work prompts --
prompts: {"p1":{"status":"answered","by":"ada"}}
-- state turn prompts --
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3}],"since":"@2s","attempt":1,"epoch":2}
prompts: {"p1":{"kind":"question","turn":"t1","since":"@3s","updated_at":"@4s","status":"answered","epoch":2,"blocking":true,"seq":3,"settled_seq":4,"on_owner_loss":"keep","delivery":"tool-result","deadline":null}}
-- facts --
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"18"}
8 by=reconciler turn.requested {"turn":"t2","cause":"answer","of_turn":"t1","prompt":"p1"}
9 session.claimed {"incarnation":"19"}
9 turn.started {"turn":"t1","cause":"message"}
-- state pending turn --
pending: (nothing)
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3}],"since":"@2s","attempt":1,"epoch":3}
-- work prompts turn --
prompts: {"p1":{"status":"answered","by":"ada"}}
turn: (nothing)
-- facts --
10 prompt.delivered {"prompt":"p1"}
11 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"later"},"had_output":false}
-- state prompts last_turn --
prompts: (nothing)
last_turn: {"id":"t1","outcome":"failed","reason":"rate_limit","at":"@11s","error":{"kind":"rate_limit","text":"later"},"prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":3}],"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":11}
