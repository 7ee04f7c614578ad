-- What the operator has switched on, until they switch it off: a restart or an upgrade does not.
CREATE TABLE switches (
	name TEXT PRIMARY KEY NOT NULL CHECK (name IN ('draining'))
) STRICT;
