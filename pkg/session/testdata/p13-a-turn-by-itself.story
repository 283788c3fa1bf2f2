A harness starts a turn by itself. Prompts that the turn does not name stay owed, with a receipt or without, and the next
request names them. Prompts that it names are delivered when it completes. A turn that a living process starts over its
own turn keeps the prompts that the process gave receipts for (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
4 by=ledger prompt.answered {"prompt":"p1","answers":[],"by":"ada"}
5 by=ledger prompt.answered {"prompt":"p2","answers":[],"by":"ada"}
6 prompt.delivered {"prompt":"p1"}
7 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"later"},"had_output":false}
8 turn.started {"turn":"own","cause":"message","synthetic":true}
-- state turn last_turn --
turn: {"id":"own","cause":"message","synthetic":true,"since":"@8s","attempt":1,"epoch":1}
last_turn: {"id":"t1","outcome":"failed","reason":"rate_limit","at":"@7s","error":{"kind":"rate_limit","text":"later"},"message":"m1","prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":1},{"prompt":"p2","status":"answered","seq":5,"asked":3}],"cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":7}
-- facts --
9 turn.failed {"turn":"own","error":{"kind":"rate_limit","text":"later"},"had_output":false}
-- state last_turn --
last_turn: {"id":"own","outcome":"failed","reason":"rate_limit","at":"@9s","error":{"kind":"rate_limit","text":"later"},"prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":1},{"prompt":"p2","status":"answered","seq":5,"asked":3}],"cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":9}
-- facts --
10 turn.started {"turn":"own2","cause":"message","synthetic":true,"prompts":["p2"]}
11 turn.completed {"turn":"own2"}
-- state last_turn prompts --
last_turn: {"id":"own2","outcome":"completed","at":"@11s","prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":1}],"cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":11}
prompts: (nothing)
-- facts --
12 turn.started {"turn":"own3","cause":"message","synthetic":true}
13 prompt.requested {"prompt":"p3","turn":"own3","kind":"question","delivery":"callback","on_owner_loss":"keep"}
14 by=ledger prompt.answered {"prompt":"p3","answers":[],"by":"ada"}
15 prompt.delivered {"prompt":"p3"}
16 turn.started {"turn":"own4","cause":"message","synthetic":true}
-- state last_turn --
last_turn: {"id":"own3","outcome":"stopped","reason":"replaced","at":"@16s","prompts":[{"prompt":"p1","status":"answered","seq":4,"asked":3,"had":1}],"cause":"message","attempt":1,"synthetic":true,"had_output":false,"seq":16}
