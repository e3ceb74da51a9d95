//! Figures. Ignored in the ordinary run: `cargo test -p cairn-kv --profile bench table::tests::speed -- --ignored
//! --nocapture`. Minima of several rounds.
