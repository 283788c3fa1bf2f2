The process of an idle session is gone. A person dismisses a question outside of any turn: a dismissal calls for no
turn (P13).

-- facts --
1 session.opened {"incarnation":"17"}
2 prompt.requested {"prompt":"p0","kind":"question","delivery":"callback","on_owner_loss":"keep"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- request @14s --
dismiss {"prompt":"p0","by":"ada"}
-- result --
4 prompt.dismissed {"prompt":"p0","by":"ada"}
