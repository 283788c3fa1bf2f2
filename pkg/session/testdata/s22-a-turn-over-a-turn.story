A turn over an open turn ends that one: as continued if it names it, else as stopped, replaced (§2.2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
2 tool.started {"call":"c1","turn":"t1","name":"bash"}
3 turn.started {"turn":"t2","cause":"answer","synthetic":true,"of_turn":"t1"}
4 turn.started {"turn":"t3","cause":"message","of_turn":"t1"}
-- endings --
3 tool c1 ended-with-turn (turn-ended)
3 turn t1 continued
4 turn t2 stopped (replaced)
-- feed --
1 session.opened s
2 turn.started t1
2 tool.started c1
3 turn.started t2
3 turn.stopped t1 derived {"turn":"t1","actor":"","reason":"continued"}
3 tool.failed c1 derived {"call":"c1","error":{"kind":"ended-with-turn","text":""},"synthetic":true}
4 turn.started t3
4 turn.stopped t2 derived {"turn":"t2","actor":"","reason":"replaced"}
-- state turn last_turn --
turn: {"id":"t3","cause":"message","synthetic":false,"of_turn":"t1","since":"@4s","attempt":1,"epoch":1}
last_turn: {"id":"t2","outcome":"stopped","reason":"replaced","at":"@4s","cause":"answer","of_turn":"t1","attempt":1,"synthetic":true,"had_output":false,"seq":4}
