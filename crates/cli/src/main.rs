//! One command over Cairn's storage engines and the lab that measures them.

fn main() {}
