-- Reads for a while at one isolation level.
LOAD 'cairn';
SET default_transaction_isolation = :'level';
SET jit = off;
CALL t.read_for(10);
