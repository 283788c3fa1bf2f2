A harness that cannot use an answer reports that: it is shown, and the person is not asked again (P22).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
3 prompt.requested {"prompt":"p2","turn":"t1","kind":"permission","delivery":"callback"}
-- request @4s --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada","owed":true}
-- facts --
5 prompt.delivered {"prompt":"p2"}
6 prompt.delivered {"prompt":"p9"}
7 prompt.delivered {"prompt":"p1","refused":"unknown request"}
-- blocker p1 status reason delivered_at answers by --
status: "answered"
reason: "refused: unknown request"
delivered_at: "@7s"
answers: [{"question":"permission","selected":["once"]}]
by: "ada"
-- work --
(none)
-- facts --
8 prompt.requested {"prompt":"p1","turn":"t1","kind":"permission","delivery":"callback"}
9 prompt.delivered {"prompt":"p1"}
-- ignored --
5: 1, the last prompt.delivered by harness: unknown
6: 1, the last prompt.delivered by harness: unknown
8: 1, the last prompt.requested by harness: closed-id
9: 1, the last prompt.delivered by harness: closed-id
-- pending --
p2
