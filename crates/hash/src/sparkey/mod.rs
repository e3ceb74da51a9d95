//! Sparkey files, both ways.
