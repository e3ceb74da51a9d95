//! Cairn's own constant table.
