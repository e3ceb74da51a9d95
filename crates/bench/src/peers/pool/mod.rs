//! Caches that can serve as a buffer pool: pages by number, so many of them in memory. What each
//! one cannot do stands in its settings.

pub mod caches;
pub mod sqlite;

#[cfg(test)]
mod tests;
