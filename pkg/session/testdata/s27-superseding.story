A person's message supersedes every awaiting blocking prompt with keep, and no other (§2.7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"keep","turn":"t1","kind":"question","delivery":"tool-result"}
3 prompt.requested {"prompt":"keep-2","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 prompt.requested {"prompt":"callback","turn":"t1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"expire","turn":"t1","kind":"question","delivery":"message","on_owner_loss":"expire"}
3 prompt.requested {"prompt":"note","turn":"t1","kind":"question","delivery":"message","blocking":false}
3 prompt.requested {"prompt":"answered","turn":"t1","kind":"question","delivery":"message"}
4 by=ledger prompt.answered {"prompt":"answered","answers":[],"by":"ada"}
5 by=harness message.accepted {"message":"m1","content":"x","synthetic":false}
-- pending --
callback
expire
note
-- endings --
4 prompt answered answered
5 prompt keep superseded (m1)
5 prompt keep-2 superseded (m1)
-- work prompts --
prompts: {"answered":{"status":"answered","by":"ada"},"keep":{"status":"superseded","reason":"m1"},"keep-2":{"status":"superseded","reason":"m1"}}
-- feed --
1 session.opened s
2 turn.started t1
3 prompt.requested keep
3 prompt.requested keep-2
3 prompt.requested callback
3 prompt.requested expire
3 prompt.requested note
3 prompt.requested answered
4 prompt.answered answered
5 message.accepted m1
5 prompt.superseded keep derived {"prompt":"keep","message":"m1"}
5 prompt.superseded keep-2 derived {"prompt":"keep-2","message":"m1"}
