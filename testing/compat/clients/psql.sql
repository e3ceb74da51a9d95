\timing off
CREATE TABLE authors (id int PRIMARY KEY, name text NOT NULL, born date, rating numeric(4,2) DEFAULT 0);
CREATE TABLE books (
    id bigint PRIMARY KEY,
    author int NOT NULL REFERENCES authors (id) ON DELETE CASCADE,
    title varchar(100) NOT NULL UNIQUE,
    price double precision CHECK (price >= 0),
    in_print boolean DEFAULT true,
    added timestamp
);
CREATE INDEX books_author ON books (author, price DESC);
CREATE VIEW cheap AS SELECT title, price FROM books WHERE price < 10;
INSERT INTO authors VALUES (1, 'Ann', '1970-01-02', 4.5), (2, 'Žofie', NULL, DEFAULT);
INSERT INTO books VALUES (1, 1, 'First', 9.5, true, '2024-02-29 12:34:56.789'), (2, 2, 'O''Second', 19, false, NULL) RETURNING id, title;
SELECT * FROM authors ORDER BY id;
SELECT a.name, count(*), sum(b.price) FROM authors a JOIN books b ON b.author = a.id GROUP BY a.name ORDER BY a.name;
TABLE cheap;
\d
\dt
\di
\dv
\d authors
\d books
\d cheap
\l
\du
\dn
\x on
SELECT * FROM books ORDER BY id;
\x off
\pset null '(null)'
SELECT born FROM authors ORDER BY id;
BEGIN;
UPDATE authors SET rating = rating + 1;
SELECT nonsense FROM authors;
SELECT 1;
ROLLBACK;
SELECT rating FROM authors ORDER BY id;
INSERT INTO authors (id, name) VALUES (1, 'again');
INSERT INTO books VALUES (3, 9, 'Nobody''s', 1, true, NULL);
INSERT INTO books VALUES (3, 1, 'Negative', -1, true, NULL);
SELEC 1;
SELECT * FROM nowhere;
SELECT 1/0;
COPY authors TO STDOUT WITH (FORMAT csv, HEADER);
COPY authors (id, name) FROM STDIN;
3	Three
4	Fo\tur
\.
\copy (SELECT id, name FROM authors ORDER BY id) TO 'authors.csv' WITH (FORMAT csv)
\copy authors (id, name) FROM 'authors.csv' WITH (FORMAT csv)
\! sed 's/^/1/' authors.csv > more.csv
\copy authors (id, name) FROM 'more.csv' WITH (FORMAT csv)
SELECT id, name FROM authors ORDER BY id;
PREPARE by_id (int) AS SELECT name FROM authors WHERE id = $1;
EXECUTE by_id(2);
DEALLOCATE by_id;
EXPLAIN SELECT title FROM books WHERE id = 1;
DELETE FROM authors WHERE id = 2;
SELECT count(*) FROM books;
DROP VIEW cheap;
DROP TABLE books, authors;
SELECT 1 AS a \; SELECT 2 AS b;
SHOW server_version;
SELECT current_user, current_database(), version() LIKE 'PostgreSQL 15%';
\conninfo
\set FETCH_COUNT 2
SELECT i, i * i AS square FROM generate_series(1, 5) AS s(i) ORDER BY i;
\unset FETCH_COUNT
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT i FROM generate_series(1, 5) AS s(i) ORDER BY i;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
MOVE LAST IN c;
FETCH RELATIVE 0 c;
CLOSE c;
DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 5) AS s(i) ORDER BY i;
FETCH PRIOR FROM c;
COMMIT;
DECLARE c CURSOR FOR SELECT 1;
FETCH c;
