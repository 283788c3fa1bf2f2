An answer that came in through the harness is thereby delivered (§2).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback"}
2 prompt.requested {"prompt":"p2","kind":"permission","delivery":"callback"}
3 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["once"]}],"by":"ada"}
4 prompt.rejected {"prompt":"p2","by":"ada"}
-- endings --
3 prompt p1 answered delivered @3s
4 prompt p2 rejected delivered @4s
-- work --
(none)
-- blocker p1 status answers by delivered_at owned --
status: "answered"
answers: [{"question":"permission","selected":["once"]}]
by: "ada"
delivered_at: "@3s"
owned: false
