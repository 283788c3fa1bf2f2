A process answers its own prompt by policy. The turn fails, and another turn that the process starts by itself completes. The decision
calls for no turn: neither while that process lives, nor after its death. The turn that a person asks for next names it (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"question","delivery":"callback","on_owner_loss":"keep","blocking":false,"questions":[{"id":"q","question":"Which?"}]}
4 prompt.answered {"prompt":"p1","answers":[{"question":"q","selected":[],"text":"auto"}],"by":"policy"}
5 turn.failed {"turn":"t1","error":{"kind":"rate_limit","text":"later"},"had_output":false}
6 turn.started {"turn":"own","cause":"message","synthetic":true}
7 turn.completed {"turn":"own"}
-- owner --
alive
-- decide --
(none)
-- owner --
dead
-- decide @100s --
8 session.orphaned {"reason":"owner-lost","incarnation":"17"}
