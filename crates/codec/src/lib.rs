//! Varints, hashes, checksums and block compression shared by Cairn's file formats.
