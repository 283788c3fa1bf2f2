A turn runs 18 calls, and each asks for permission. The process dies, and a person rejects all 18. No receipt is in the
log, so the turn that is requested names all of them (P13, V15).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 tool.started {"call":"c00","turn":"t1","name":"edit"}
3 tool.started {"call":"c01","turn":"t1","name":"edit"}
3 tool.started {"call":"c02","turn":"t1","name":"edit"}
3 tool.started {"call":"c03","turn":"t1","name":"edit"}
3 tool.started {"call":"c04","turn":"t1","name":"edit"}
3 tool.started {"call":"c05","turn":"t1","name":"edit"}
3 tool.started {"call":"c06","turn":"t1","name":"edit"}
3 tool.started {"call":"c07","turn":"t1","name":"edit"}
3 tool.started {"call":"c08","turn":"t1","name":"edit"}
3 tool.started {"call":"c09","turn":"t1","name":"edit"}
3 tool.started {"call":"c10","turn":"t1","name":"edit"}
3 tool.started {"call":"c11","turn":"t1","name":"edit"}
3 tool.started {"call":"c12","turn":"t1","name":"edit"}
3 tool.started {"call":"c13","turn":"t1","name":"edit"}
3 tool.started {"call":"c14","turn":"t1","name":"edit"}
3 tool.started {"call":"c15","turn":"t1","name":"edit"}
3 tool.started {"call":"c16","turn":"t1","name":"edit"}
3 tool.started {"call":"c17","turn":"t1","name":"edit"}
4 prompt.requested {"prompt":"p00","turn":"t1","call":"c00","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p01","turn":"t1","call":"c01","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p02","turn":"t1","call":"c02","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p03","turn":"t1","call":"c03","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p04","turn":"t1","call":"c04","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p05","turn":"t1","call":"c05","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p06","turn":"t1","call":"c06","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p07","turn":"t1","call":"c07","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p08","turn":"t1","call":"c08","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p09","turn":"t1","call":"c09","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p10","turn":"t1","call":"c10","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p11","turn":"t1","call":"c11","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p12","turn":"t1","call":"c12","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p13","turn":"t1","call":"c13","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p14","turn":"t1","call":"c14","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p15","turn":"t1","call":"c15","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p16","turn":"t1","call":"c16","kind":"question","delivery":"tool-result"}
4 prompt.requested {"prompt":"p17","turn":"t1","call":"c17","kind":"question","delivery":"tool-result"}
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request --
reject {"prompt":"p00","text":"not this one: 0","by":"ada"}
-- result --
6 prompt.rejected {"prompt":"p00","text":"not this one: 0","by":"ada","owed":true}
6 tool.failed {"call":"c00","error":{"kind":"rejected","text":"not this one: 0"},"synthetic":true}
-- request --
reject {"prompt":"p01","text":"not this one: 1","by":"ada"}
-- result --
7 prompt.rejected {"prompt":"p01","text":"not this one: 1","by":"ada","owed":true}
7 tool.failed {"call":"c01","error":{"kind":"rejected","text":"not this one: 1"},"synthetic":true}
-- request --
reject {"prompt":"p02","text":"not this one: 2","by":"ada"}
-- result --
8 prompt.rejected {"prompt":"p02","text":"not this one: 2","by":"ada","owed":true}
8 tool.failed {"call":"c02","error":{"kind":"rejected","text":"not this one: 2"},"synthetic":true}
-- request --
reject {"prompt":"p03","text":"not this one: 3","by":"ada"}
-- result --
9 prompt.rejected {"prompt":"p03","text":"not this one: 3","by":"ada","owed":true}
9 tool.failed {"call":"c03","error":{"kind":"rejected","text":"not this one: 3"},"synthetic":true}
-- request --
reject {"prompt":"p04","text":"not this one: 4","by":"ada"}
-- result --
10 prompt.rejected {"prompt":"p04","text":"not this one: 4","by":"ada","owed":true}
10 tool.failed {"call":"c04","error":{"kind":"rejected","text":"not this one: 4"},"synthetic":true}
-- request --
reject {"prompt":"p05","text":"not this one: 5","by":"ada"}
-- result --
11 prompt.rejected {"prompt":"p05","text":"not this one: 5","by":"ada","owed":true}
11 tool.failed {"call":"c05","error":{"kind":"rejected","text":"not this one: 5"},"synthetic":true}
-- request --
reject {"prompt":"p06","text":"not this one: 6","by":"ada"}
-- result --
12 prompt.rejected {"prompt":"p06","text":"not this one: 6","by":"ada","owed":true}
12 tool.failed {"call":"c06","error":{"kind":"rejected","text":"not this one: 6"},"synthetic":true}
-- request --
reject {"prompt":"p07","text":"not this one: 7","by":"ada"}
-- result --
13 prompt.rejected {"prompt":"p07","text":"not this one: 7","by":"ada","owed":true}
13 tool.failed {"call":"c07","error":{"kind":"rejected","text":"not this one: 7"},"synthetic":true}
-- request --
reject {"prompt":"p08","text":"not this one: 8","by":"ada"}
-- result --
14 prompt.rejected {"prompt":"p08","text":"not this one: 8","by":"ada","owed":true}
14 tool.failed {"call":"c08","error":{"kind":"rejected","text":"not this one: 8"},"synthetic":true}
-- request --
reject {"prompt":"p09","text":"not this one: 9","by":"ada"}
-- result --
15 prompt.rejected {"prompt":"p09","text":"not this one: 9","by":"ada","owed":true}
15 tool.failed {"call":"c09","error":{"kind":"rejected","text":"not this one: 9"},"synthetic":true}
-- request --
reject {"prompt":"p10","text":"not this one: 10","by":"ada"}
-- result --
16 prompt.rejected {"prompt":"p10","text":"not this one: 10","by":"ada","owed":true}
16 tool.failed {"call":"c10","error":{"kind":"rejected","text":"not this one: 10"},"synthetic":true}
-- request --
reject {"prompt":"p11","text":"not this one: 11","by":"ada"}
-- result --
17 prompt.rejected {"prompt":"p11","text":"not this one: 11","by":"ada","owed":true}
17 tool.failed {"call":"c11","error":{"kind":"rejected","text":"not this one: 11"},"synthetic":true}
-- request --
reject {"prompt":"p12","text":"not this one: 12","by":"ada"}
-- result --
18 prompt.rejected {"prompt":"p12","text":"not this one: 12","by":"ada","owed":true}
18 tool.failed {"call":"c12","error":{"kind":"rejected","text":"not this one: 12"},"synthetic":true}
-- request --
reject {"prompt":"p13","text":"not this one: 13","by":"ada"}
-- result --
19 prompt.rejected {"prompt":"p13","text":"not this one: 13","by":"ada","owed":true}
19 tool.failed {"call":"c13","error":{"kind":"rejected","text":"not this one: 13"},"synthetic":true}
-- request --
reject {"prompt":"p14","text":"not this one: 14","by":"ada"}
-- result --
20 prompt.rejected {"prompt":"p14","text":"not this one: 14","by":"ada","owed":true}
20 tool.failed {"call":"c14","error":{"kind":"rejected","text":"not this one: 14"},"synthetic":true}
-- request --
reject {"prompt":"p15","text":"not this one: 15","by":"ada"}
-- result --
21 prompt.rejected {"prompt":"p15","text":"not this one: 15","by":"ada","owed":true}
21 tool.failed {"call":"c15","error":{"kind":"rejected","text":"not this one: 15"},"synthetic":true}
-- request --
reject {"prompt":"p16","text":"not this one: 16","by":"ada"}
-- result --
22 prompt.rejected {"prompt":"p16","text":"not this one: 16","by":"ada","owed":true}
22 tool.failed {"call":"c16","error":{"kind":"rejected","text":"not this one: 16"},"synthetic":true}
-- request --
reject {"prompt":"p17","text":"not this one: 17","by":"ada"}
-- result --
23 prompt.rejected {"prompt":"p17","text":"not this one: 17","by":"ada","owed":true}
23 tool.failed {"call":"c17","error":{"kind":"rejected","text":"not this one: 17"},"synthetic":true}
23 turn.requested {"turn":"turn-f5uusk3n5u74u7bkvshv","cause":"answer","of_turn":"t1","prompt":"p17","prompts":["p00","p01","p02","p03","p04","p05","p06","p07","p08","p09","p10","p11","p12","p13","p14","p15","p16","p17"]}
-- state turn --
turn: {"id":"t1","cause":"message","synthetic":false,"prompts":[{"prompt":"p00","status":"rejected","seq":6,"asked":4},{"prompt":"p01","status":"rejected","seq":7,"asked":4},{"prompt":"p02","status":"rejected","seq":8,"asked":4},{"prompt":"p03","status":"rejected","seq":9,"asked":4},{"prompt":"p04","status":"rejected","seq":10,"asked":4},{"prompt":"p05","status":"rejected","seq":11,"asked":4},{"prompt":"p06","status":"rejected","seq":12,"asked":4},{"prompt":"p07","status":"rejected","seq":13,"asked":4},{"prompt":"p08","status":"rejected","seq":14,"asked":4},{"prompt":"p09","status":"rejected","seq":15,"asked":4},{"prompt":"p10","status":"rejected","seq":16,"asked":4},{"prompt":"p11","status":"rejected","seq":17,"asked":4},{"prompt":"p12","status":"rejected","seq":18,"asked":4},{"prompt":"p13","status":"rejected","seq":19,"asked":4},{"prompt":"p14","status":"rejected","seq":20,"asked":4},{"prompt":"p15","status":"rejected","seq":21,"asked":4},{"prompt":"p16","status":"rejected","seq":22,"asked":4},{"prompt":"p17","status":"rejected","seq":23,"asked":4}],"since":"@2s","attempt":1,"epoch":1,"decided_seq":23}
-- work turn --
turn: {"turn":"turn-f5uusk3n5u74u7bkvshv","cause":"answer","of_turn":"t1","attempt":1,"prompt":"p17","prompts":[{"prompt":"p00","seq":6,"status":"rejected","text":"not this one: 0","by":"ada"},{"prompt":"p01","seq":7,"status":"rejected","text":"not this one: 1","by":"ada"},{"prompt":"p02","seq":8,"status":"rejected","text":"not this one: 2","by":"ada"},{"prompt":"p03","seq":9,"status":"rejected","text":"not this one: 3","by":"ada"},{"prompt":"p04","seq":10,"status":"rejected","text":"not this one: 4","by":"ada"},{"prompt":"p05","seq":11,"status":"rejected","text":"not this one: 5","by":"ada"},{"prompt":"p06","seq":12,"status":"rejected","text":"not this one: 6","by":"ada"},{"prompt":"p07","seq":13,"status":"rejected","text":"not this one: 7","by":"ada"},{"prompt":"p08","seq":14,"status":"rejected","text":"not this one: 8","by":"ada"},{"prompt":"p09","seq":15,"status":"rejected","text":"not this one: 9","by":"ada"},{"prompt":"p10","seq":16,"status":"rejected","text":"not this one: 10","by":"ada"},{"prompt":"p11","seq":17,"status":"rejected","text":"not this one: 11","by":"ada"},{"prompt":"p12","seq":18,"status":"rejected","text":"not this one: 12","by":"ada"},{"prompt":"p13","seq":19,"status":"rejected","text":"not this one: 13","by":"ada"},{"prompt":"p14","seq":20,"status":"rejected","text":"not this one: 14","by":"ada"},{"prompt":"p15","seq":21,"status":"rejected","text":"not this one: 15","by":"ada"},{"prompt":"p16","seq":22,"status":"rejected","text":"not this one: 16","by":"ada"},{"prompt":"p17","seq":23,"status":"rejected","text":"not this one: 17","by":"ada"}]}
-- facts --
100 session.claimed {"incarnation":"18"}
100 turn.started {"turn":"$requested"}
101 turn.completed {"turn":"$turn"}
-- state prompts last_turn pending --
prompts: (nothing)
last_turn: {"id":"turn-f5uusk3n5u74u7bkvshv","outcome":"completed","at":"@101s","cause":"answer","of_turn":"t1","attempt":1,"synthetic":false,"had_output":false,"seq":101}
pending: (nothing)
