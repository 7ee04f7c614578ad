-- Rows that break the rules of their table and cannot be mended in place: kept whole, out of the
-- way of the others (anvilctl check --fix).

CREATE TABLE set_aside (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at INTEGER NOT NULL,
	source TEXT NOT NULL, -- the table
	subject TEXT NOT NULL,
	content TEXT NOT NULL CHECK (content GLOB '{*}') -- each value as an SQL literal
) STRICT;
