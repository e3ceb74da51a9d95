#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_table::storage::fuzz::packed_leaf(data));
