Defaults of a prompt: it blocks; a callback expires, all others are kept; a permission has one question (§2).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p1","kind":"permission","delivery":"callback","title":"rm -rf build"}
3 prompt.requested {"prompt":"p2","kind":"question","delivery":"message","on_owner_loss":"expire","blocking":false}
4 prompt.requested {"prompt":"p3","kind":"plan"}
-- state prompts --
prompts: {"p1":{"kind":"permission","since":"@2s","updated_at":"@2s","status":"awaiting","epoch":1,"blocking":true,"seq":2,"settled_seq":0,"on_owner_loss":"expire","delivery":"callback","deadline":null},"p2":{"kind":"question","since":"@3s","updated_at":"@3s","status":"awaiting","epoch":1,"blocking":false,"seq":3,"settled_seq":0,"on_owner_loss":"expire","delivery":"message","deadline":null},"p3":{"kind":"plan","since":"@4s","updated_at":"@4s","status":"awaiting","epoch":1,"blocking":true,"seq":4,"settled_seq":0,"on_owner_loss":"keep","delivery":"","deadline":null}}
-- blocker p1 title questions on_owner_loss blocking --
title: "rm -rf build"
questions: [{"id":"permission","question":"rm -rf build","options":[{"label":"once"},{"label":"always"}],"multi":false,"custom":false}]
on_owner_loss: "expire"
blocking: true
-- request --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["never"]}],"by":"ada"}
-- result --
422 the answer does not fit the questions; the prompt stays open: permission: "never" is not offered
  {"questions":{"permission":"\"never\" is not offered"},"reason":"the answer does not fit the questions; the prompt stays open: permission: \"never\" is not offered"}
-- request @5s --
answer {"prompt":"p1","answers":[{"question":"permission","selected":["always"]}],"by":"ada"}
-- result --
5 prompt.answered {"prompt":"p1","answers":[{"question":"permission","selected":["always"]}],"by":"ada","owed":true}
