A claim after a lost lease takes several commits, and the adoption grace ends before the last of them. A turn is requested
for a decision as for one of a process that is gone. When the claim says that an Ask waits for the decision, the turn is
taken back. It stays if it brings another decision, too (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"waits","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
3 prompt.requested {"prompt":"left","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false}
-- request @12s --
answer {"prompt":"waits","answers":[],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"waits","answers":[],"by":"ada","owed":true}
-- facts --
5 session.claimed {"incarnation":"18"}
-- request @16s --
continue {"ofturn":""}
-- result --
6 turn.requested {"turn":"turn-3xrgf24qwdojkewo2ibp","cause":"answer","prompt":"waits","prompts":["waits"]}
-- facts --
7 prompt.attended {"prompt":"waits"}
-- state pending --
pending: (nothing)
-- facts --
8 prompt.unattended {"prompt":"waits"}
-- request @19s --
continue {"ofturn":""}
-- result --
9 turn.requested {"turn":"turn-h7pkqsxhsp5h27khjkkq","cause":"answer","prompt":"waits","prompts":["waits"]}
-- request @20s --
answer {"prompt":"left","answers":[],"by":"ada"}
-- result --
10 prompt.answered {"prompt":"left","answers":[],"by":"ada","owed":true}
10 turn.requested {"turn":"turn-yq7l2nau2sgwfraz2jbh","cause":"answer","prompt":"left","prompts":["waits","left"]}
-- facts --
11 prompt.attended {"prompt":"waits"}
-- state pending --
pending: {"turn":{"turn":"turn-yq7l2nau2sgwfraz2jbh","cause":"answer","attempt":0,"prompt":"left","prompts":[{"prompt":"left","status":"answered","seq":10,"asked":3}],"at":"@20s","seq":10}}
